# The Python modules of sparknet.native, and the generated messages of sparknet.proto.
#
# A wheel takes them from the install rules. Otherwise (pip install -e, or plain CMake) they are
# put into the source tree, where Python, mypy and the tests look for them.

set(generated "${CMAKE_CURRENT_BINARY_DIR}/_sparknet.c")
file(GLOB public_headers CONFIGURE_DEPENDS include/sparknet/*.h)
add_custom_command(
  OUTPUT "${generated}"
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/cffi_build.py"
          "${CMAKE_CURRENT_SOURCE_DIR}/include" "${generated}"
  DEPENDS cffi_build.py ${public_headers}
  COMMENT "Reading the headers with cffi"
  VERBATIM)

# Python 3.10 is the oldest that is served, and so the stable ABI that is used.
function(add_python_module name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE Python::Module sparknet_flags)
  target_compile_definitions(${name} PRIVATE Py_LIMITED_API=0x030A0000)
  set_target_properties(
    ${name}
    PROPERTIES PREFIX "" SUFFIX ".abi3.so" C_VISIBILITY_PRESET hidden
               LIBRARY_OUTPUT_DIRECTORY "${SPARKNET_OUTPUT}/native")
  if(SKBUILD_WHEEL)
    install(TARGETS ${name} LIBRARY DESTINATION sparknet/native)
  endif()
endfunction()

add_python_module(_buffer buffer.c)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # It calls nothing of the C library, but auditwheel asks each extension which one it is for.
  target_link_options(_buffer PRIVATE "LINKER:--no-as-needed")
endif()
add_python_module(_sparknet "${generated}")
target_link_libraries(_sparknet PRIVATE sparknet_core)
# What cffi writes is not ours to mend.
set_source_files_properties("${generated}" PROPERTIES COMPILE_OPTIONS "-w")

# Beside the extension, then where a venv or a conda environment keeps libraries.
set(search "$ORIGIN" "$ORIGIN/../../../.." "$ORIGIN/../../lib")
if(SPARKNET_ONEDNN AND NOT SPARKNET_ONEDNN_BUNDLE)
  # A system's oneDNN in a folder of its own, such as /opt/onednn/lib.
  get_filename_component(onednn_folder "${dnnl_DIR}/../.." ABSOLUTE)
  list(APPEND search "${onednn_folder}")
endif()
set_target_properties(_sparknet PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${search}"
                                           INSTALL_RPATH_USE_LINK_PATH OFF)

if(SPARKNET_ONEDNN_BUNDLE)
  if(SKBUILD_WHEEL)
    # A fifth of its bytes are the names of its own functions.
    set(stripped "${CMAKE_CURRENT_BINARY_DIR}/libdnnl.so.3")
    execute_process(COMMAND "${CMAKE_STRIP}" --strip-unneeded -o "${stripped}" "${SPARKNET_ONEDNN_BUNDLE}"
                    COMMAND_ERROR_IS_FATAL ANY)
    install(FILES "${stripped}" DESTINATION sparknet/native)
    file(GLOB notices "${pip_prefix}/share/doc/onednn/*")
    install(FILES ${notices} DESTINATION sparknet/native/onednn)
  else()
    add_custom_command(
      OUTPUT "${SPARKNET_OUTPUT}/native/libdnnl.so.3"
      COMMAND "${CMAKE_COMMAND}" -E copy "${SPARKNET_ONEDNN_BUNDLE}"
              "${SPARKNET_OUTPUT}/native/libdnnl.so.3"
      COMMENT "Putting oneDNN beside the extension"
      VERBATIM)
    add_custom_target(onednn_copy ALL DEPENDS "${SPARKNET_OUTPUT}/native/libdnnl.so.3")
  endif()
endif()

set(proto "${PROJECT_SOURCE_DIR}/proto")
if(SKBUILD_WHEEL)
  set(messages "${CMAKE_CURRENT_BINARY_DIR}/proto")
else()
  set(messages "${PROJECT_SOURCE_DIR}/sparknet/proto")
endif()
file(MAKE_DIRECTORY "${messages}" "${CMAKE_CURRENT_BINARY_DIR}/whole")
add_custom_command(
  OUTPUT "${messages}/_descriptor.py" "${messages}/caffe_pb2.pyi"
  COMMAND "${Python_EXECUTABLE}" "${proto}/compile.py" "${messages}"
  DEPENDS "${proto}/compile.py" "${proto}/caffe.proto"
  COMMENT "Compiling caffe.proto"
  VERBATIM)
add_custom_target(messages ALL DEPENDS "${messages}/_descriptor.py" "${messages}/caffe_pb2.pyi")
if(SKBUILD_WHEEL)
  install(FILES "${messages}/_descriptor.py" "${messages}/caffe_pb2.pyi"
          DESTINATION sparknet/proto)
endif()

# Licences and the list of what is inside, which .ci/wheel.py writes.
if(SPARKNET_NOTICES)
  install(DIRECTORY "${SPARKNET_NOTICES}/" DESTINATION "${SKBUILD_METADATA_DIR}")
endif()

# A source tree's stubs are made by `make setup`. A wheel's need the package whole: its Python files beside what was built.
if(SKBUILD_WHEEL AND CMAKE_CROSSCOMPILING)
  # Nothing can be run: the ones of the tree.
  foreach(room IN ITEMS dsl spark/pipeline)
    install(FILES "${PROJECT_SOURCE_DIR}/sparknet/${room}/typed.pyi" DESTINATION sparknet/${room})
  endforeach()
elseif(SKBUILD_WHEEL)
  set(whole "${CMAKE_CURRENT_BINARY_DIR}/whole")
  set(copy "${CMAKE_COMMAND}" -E copy_directory)
  set(libraries "${whole}/sparknet/native")
  set(bundle "")
  if(SPARKNET_ONEDNN_BUNDLE)
    set(bundle COMMAND "${CMAKE_COMMAND}" -E copy "${SPARKNET_ONEDNN_BUNDLE}" "${libraries}/libdnnl.so.3")
  elseif(SPARKNET_ONEDNN)
    string(APPEND libraries ":$<TARGET_FILE_DIR:DNNL::dnnl>")
  endif()
  add_custom_target(
    stubs ALL
    COMMAND ${copy} "${PROJECT_SOURCE_DIR}/sparknet" "${whole}/sparknet"
    COMMAND ${copy} "${SPARKNET_OUTPUT}/native" "${whole}/sparknet/native"
    COMMAND ${copy} "${messages}" "${whole}/sparknet/proto"
    COMMAND ${copy} "${PROJECT_SOURCE_DIR}/stubs" "${whole}/stubs" ${bundle}
    COMMAND "${CMAKE_COMMAND}" -E env --unset=PYTHONPATH "LD_LIBRARY_PATH=${libraries}"
            "${Python_EXECUTABLE}" -m stubs "${CMAKE_CURRENT_BINARY_DIR}/stubs"
    WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/whole"
    COMMENT "Writing the stubs of layer types and Params"
    VERBATIM)
  add_dependencies(stubs messages _sparknet _buffer)
  install(DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/stubs/" DESTINATION sparknet)
endif()
