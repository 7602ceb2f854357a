# Finds oneDNN 3.2 or newer with OpenMP: on the system, else in the building Python's packages.
# Sets SPARKNET_ONEDNN_BUNDLE to the library file if it has to travel with the extension:
# pip leaves out what lies outside site-packages when it installs with --target, so the
# package onednn-cpu-gomp cannot be relied upon to be complete there.

set(SPARKNET_ONEDNN_BUNDLE "")
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/native/find_onednn.py"
  OUTPUT_VARIABLE pip_prefix)

function(check_runtime)
  if(DNNL_CPU_RUNTIME AND NOT DNNL_CPU_RUNTIME STREQUAL "OMP")
    message(STATUS "oneDNN in ${dnnl_DIR} runs on ${DNNL_CPU_RUNTIME}, not on OpenMP: passed over")
    set(dnnl_FOUND FALSE PARENT_SCOPE)
  endif()
endfunction()

# A dnnl_DIR of an earlier run may point into a temporary environment that is gone.
unset(dnnl_DIR CACHE)
set(search_prefixes "${CMAKE_PREFIX_PATH}")
if(pip_prefix)
  # Kept out of the search on the system.
  list(APPEND CMAKE_IGNORE_PREFIX_PATH "${pip_prefix}")
endif()
foreach(version 3.2 4.0)
  if(NOT dnnl_FOUND)
    find_package(dnnl ${version} CONFIG QUIET)
    if(dnnl_FOUND)
      check_runtime()
    endif()
  endif()
endforeach()

if(NOT dnnl_FOUND AND pip_prefix)
  list(REMOVE_ITEM CMAKE_IGNORE_PREFIX_PATH "${pip_prefix}")
  unset(dnnl_DIR CACHE)
  find_package(dnnl 3.2 CONFIG QUIET PATHS "${pip_prefix}/lib/cmake/dnnl" NO_DEFAULT_PATH)
  if(dnnl_FOUND)
    get_target_property(SPARKNET_ONEDNN_BUNDLE DNNL::dnnl IMPORTED_LOCATION_RELEASE)
    # Headers at a place of the build's own: an isolated build's environment has another name each
    # time, by which a compiler cache would take every file for a new one.
    file(GLOB headers "${pip_prefix}/include/dnnl*" "${pip_prefix}/include/oneapi")
    file(COPY ${headers} DESTINATION "${CMAKE_CURRENT_BINARY_DIR}/onednn/include")
    set_target_properties(DNNL::dnnl PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
                                                "${CMAKE_CURRENT_BINARY_DIR}/onednn/include")
  endif()
endif()

if(NOT dnnl_FOUND)
  message(
    FATAL_ERROR
      "oneDNN 3.2 or newer with OpenMP was not found: run "
      "'pip install onednn-devel-cpu-gomp', or install your system's oneDNN development package.")
endif()
message(STATUS "oneDNN ${dnnl_VERSION} from ${dnnl_DIR}")
