# ccache, where it is: CI compiles the same files for several builds, in folders of their own.
#
# Paths below the source tree are relative for it, so that another copy of the tree finds them again.

find_program(SPARKNET_CCACHE ccache HINTS ENV SPARKNET_TOOLS)
foreach(language C CXX)
  if(SPARKNET_CCACHE AND NOT CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER
        "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
        "${SPARKNET_CCACHE}")
  endif()
endforeach()
