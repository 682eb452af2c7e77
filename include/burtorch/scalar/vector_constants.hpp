// burtorch/scalar/vector_constants.hpp — polynomials of the vector functions; made by scripts/make_polynomials.py
// SPDX-License-Identifier: MIT
//
// What each polynomial approximates stands beside its use in vector_math.hpp and in the script.
#pragma once

#include <burtorch/base/config.hpp>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// clang-format off
template <class T> struct VectorConstants;

template <> struct VectorConstants<float> {
  // log 2 in parts
  static constexpr float ln2[] = {0x58b9p-15f, 0x5fdf47p-42f};
  // π/2 in parts
  static constexpr float halfPi[] = {0xc9p-7f, 0x7edp-22f, 0x511p-34f, 0x5a3p-49f, 0x8d3131p-77f};
  // lowest power first; error 2^-32.0
  static constexpr float exp[] = {0x1p-1f, 0x555555p-25f, 0xaaaa59p-28f, 0x8888c5p-30f, 0x2dae3fp-31f, 0xd01975p-36f};
  // lowest power first; error 2^-29.2
  static constexpr float log[] = {0xaaaabdp-24f, 0xccaf5dp-25f, 0x98f171p-25f};
  // lowest power first; error 2^-28.0
  static constexpr float sin[] = {-0xaaaaa3p-26f, 0x8883abp-30f, -0xcca595p-36f};
  // lowest power first; error 2^-33.3
  static constexpr float cos[] = {0xaaaaa5p-28f, -0xb60641p-33f, 0xccffa3p-39f};
  // lowest power first; error 2^-29.6
  static constexpr float erfNear[] = {0x20dd75p-24f, -0xc0939fp-25f, 0xe7168fp-27f, -0xdbfdc3p-29f, 0xaa0c35p-31f, -0x691e75p-33f, 0xa560c3p-37f};
  // lowest power first; error 2^-35.5
  static constexpr float erfFar[] = {-0xc52a75p-36f, 0x484b03p-22f, 0x2886adp-22f, 0xde0a85p-27f, -0x33a05dp-27f, 0x44e325p-30f, -0xe762c3p-35f, 0xb5eba1p-39f};
};

template <> struct VectorConstants<double> {
  // log 2 in parts
  static constexpr double ln2[] = {0x162e42fefa3p-41, 0x9ef35793c7673p-93};
  // π/2 in parts
  static constexpr double halfPi[] = {0x6487ed51p-30, 0x85a308d3p-65, 0x98cc517p-96, 0x1b839a252049c1p-156};
  // lowest power first; error 2^-61.7
  static constexpr double exp[] = {0x1p-1, 0x15555555555559p-55, 0x1555555555553fp-57, 0x8888888887b6dp-58, 0xb60b60b60f851p-61, 0xd00d00d7e9ec7p-64, 0x1a01a017bbab83p-68, 0x171ddf87eb4e4dp-71, 0x93f29b2160ed9p-73, 0x6bd79d4c81e6fp-76, 0x11ee8686f03447p-81};
  // lowest power first; error 2^-58.5
  static constexpr double log[] = {0xaaaaaaaaaaac9p-52, 0x666666665ff6bp-52, 0x492492507c773p-52, 0xe38e290461e05p-54, 0xba331f83f9a33p-54, 0x139a1b791a3f3p-51, 0x12f0582c0c42e1p-55};
  // lowest power first; error 2^-58.0
  static constexpr double sin[] = {-0x15555555555549p-55, 0x1111111110f841p-59, -0x6806806702875p-63, 0xb8ef1ab879df3p-70, -0x1ae5e60bcfaf03p-78, 0x15d915bd8f6fbfp-85};
  // lowest power first; error 2^-64.2
  static constexpr double cos[] = {0x5555555555553p-55, -0x5b05b05b0545p-56, 0xd00d00ce55bb9p-67, -0x127e4f8053489p-70, 0x8f74f4484fe23p-80, -0x31f59a21ecc6bp-86};
  // lowest power first; error 2^-62.8
  static constexpr double erfNear[] = {0x106eba8214db69p-55, -0xc093a3581bcf3p-53, 0xe71790d021599p-55, -0x6e0b38c4a13a9p-56, 0x1565bcd0dbc15dp-60, -0x1c02db3db018fbp-63, 0xfcd190ee1122bp-65, -0x1f4d1e388847f3p-69, 0xdcef93b194725p-71, -0x2be3de4372227p-72, 0x7ded8c1bb0b43p-77, -0x138a1375425851p-82, 0x10608f5fa982dbp-86};
  // lowest power first; error 2^-62.3
  static constexpr double erfFar[] = {0x7c0f16a871e15p-76, 0x906eb84e52afbp-51, 0xa2f99477ad465p-52, 0xd2796bdd1a99bp-55, -0x139636f161ea8dp-58, -0xd4abd0e5c173dp-64, 0x1b73dc5f8d8d03p-62, -0x243c82eb6fb99p-60, -0x16a4804d6d9b4fp-68, 0x1cfa1babcfab4fp-66, -0x10f22f59fa38cfp-66, 0x19698f72cfd06fp-68, -0x1c65654b116a45p-70, 0xc4cbf0c7aa22dp-71, -0x84dbdf92b37c1p-73, 0x89d8e2b92cd43p-76, -0xd4d6d2d27ef81p-80, 0x7346d150b6aa7p-83, -0x138c050e5cca43p-89, 0xc7d9897619259p-94};
};

// clang-format on

} // namespace detail

BURTORCH_END_NAMESPACE
