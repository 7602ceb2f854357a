# How all native code is compiled.
#
# The baseline is the processor family's oldest member; hot loops are compiled for newer
# instruction sets as well and chosen at run time (native/ndarray/kernel.h). Products and
# sums are not fused, so that results are the same on every processor; the loops of Winograd
# convolutions are the exception (native/CMakeLists.txt), and oneDNN chooses for itself.

add_library(sparknet_flags INTERFACE)
# The standards stand here: versions of CMake put their own words for them at different places of a
# command, and a compiler cache takes that for another command.
target_compile_options(sparknet_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-std=c11>
                                                $<$<COMPILE_LANGUAGE:CXX>:-std=c++17>)
target_compile_options(sparknet_flags INTERFACE -ffp-contract=off -fno-math-errno
                                                -fno-trapping-math -Wno-psabi)
# POSIX, from headers that otherwise keep to ISO C.
target_compile_definitions(sparknet_flags INTERFACE _GNU_SOURCE)

if(SPARKNET_WERROR)
  target_compile_options(
    sparknet_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
                             $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>)
endif()

if(SPARKNET_SANITIZE)
  target_compile_options(sparknet_flags INTERFACE -fsanitize=address,undefined
                                                  -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Its run time is not in the library that Atheris puts in front of Python.
  target_compile_options(sparknet_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-fno-sanitize=vptr>)
  target_link_options(sparknet_flags INTERFACE -fsanitize=address,undefined)
else()
  target_compile_options(sparknet_flags INTERFACE $<$<CONFIG:Release>:-O3>)
  include(CheckCSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -Werror)
  # Of AVX-512 the part that Skylake's servers have, for which GCC has had a name since version 12:
  # loops over bfloat16 need vectors of 16 bits.
  foreach(sets IN ITEMS "\"arch=x86-64-v3\",\"arch=x86-64-v4\"" "\"avx2\",\"avx512f\"")
    string(MAKE_C_IDENTIFIER "SPARKNET_HAS_${sets}" has)
    check_c_source_compiles(
      "__attribute__((target_clones(\"default\", ${sets})))
       static int twice(int x) { return 2 * x; }
       int main(int count, char **words) { return twice(count) + (words == 0); }"
      ${has})
    if(${has})
      target_compile_definitions(sparknet_flags INTERFACE "SPARKNET_SETS=${sets}")
      break()
    endif()
  endforeach()
  unset(CMAKE_REQUIRED_FLAGS)
endif()
