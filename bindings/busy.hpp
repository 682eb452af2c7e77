// bindings/busy.hpp — what is in use by a long call without the interpreter's lock, and who asks for it meanwhile
// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>

namespace burtorch_python {

// burtorch.Error in Python.
class IsBusy : public std::runtime_error {
public:
  explicit IsBusy(const char* what = "this tape is")
      : std::runtime_error(std::string(what) + " in use by a long call of another thread") {}
};

// While one exists, the flag says that its owner is in use; it throws if it is in use already.
class Busy {
public:
  explicit Busy(bool& flag, const char* what = "this tape is") : flag_(flag) {
    if (flag_) throw IsBusy(what);
    flag_ = true;
  }
  ~Busy() { flag_ = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

private:
  bool& flag_;
};

} // namespace burtorch_python
