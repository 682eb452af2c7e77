// bindings/anomaly.hpp — while burtorch.detect_anomaly() is active on a tape
// SPDX-License-Identifier: MIT
#pragma once

#include "tape.hpp"

namespace burtorch_python {

// Throws AnomalyError if an operation recorded on a watched tape made a NaN or an infinity.
template <class T> void demandFinite(TapeOf<T>& tape);

// The same for a gradient, while it is computed.
template <class T> void watchedBackward(TapeOf<T>& tape, const typename TapeOf<T>::Value& root);

} // namespace burtorch_python
