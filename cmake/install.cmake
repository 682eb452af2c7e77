# cmake/install.cmake — headers, CMake package and pkg-config file; nothing installed depends on the prefix
# SPDX-License-Identifier: MIT
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# Headers alone are the same for every architecture, so everything lives under share/, not lib/.
set(burtorch_cmake_dir "${CMAKE_INSTALL_DATADIR}/cmake/burtorch")
set(burtorch_pkgconfig_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")

target_include_directories(burtorch INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
install(TARGETS burtorch EXPORT burtorchTargets)
install(FILES include/burtorch.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY include/burtorch DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp")
# How debuggers show Values and tapes.
install(DIRECTORY share/burtorch DESTINATION "${CMAKE_INSTALL_DATADIR}")

install(EXPORT burtorchTargets NAMESPACE burtorch:: DESTINATION "${burtorch_cmake_dir}")
configure_package_config_file(
  cmake/burtorchConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/burtorchConfig.cmake"
  INSTALL_DESTINATION "${burtorch_cmake_dir}" NO_SET_AND_CHECK_MACRO)
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(
  "${CMAKE_CURRENT_BINARY_DIR}/burtorchConfigVersion.cmake" COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/burtorchConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/burtorchConfigVersion.cmake"
        DESTINATION "${burtorch_cmake_dir}")

# The .pc file finds the headers from where it lies itself.
file(RELATIVE_PATH burtorch_pc_include "${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig"
     "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
configure_file(cmake/burtorch.pc.in "${CMAKE_CURRENT_BINARY_DIR}/burtorch.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/burtorch.pc" DESTINATION "${burtorch_pkgconfig_dir}")
