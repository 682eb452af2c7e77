// bindings/mark.hpp — burtorch.Mark: a position on a tape of any dtype
// SPDX-License-Identifier: MIT
#pragma once

#include "tape.hpp"

#include <memory>
#include <stdexcept>

namespace burtorch_python {

// While Python holds one, the tape does not compact itself.
class Mark {
public:
  template <class T> using Position = typename TapeOf<T>::Tape::Mark;

  explicit Mark(AnyTape& tape) : tape_(&tape) {
    demandIdle(tape);
    tape.settle();
    visit(tape, [&]<class T>(TapeOf<T>& t) { set<T>(t.tape.mark()); });
  }
  template <class T>
  Mark(TapeOf<T>& tape, const typename TapeOf<T>::Tape::Mark& position) : tape_(&tape) {
    set<T>(position);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() { --tape_->marks; }

  void rewind(AnyTape& tape) const {
    demandIdle(tape);
    visit(tape, [&]<class T>(TapeOf<T>& t) {
      const std::size_t before = t.tape.size();
      t.tape.rewind(on(t));
      t.forgetValues(t.tape.size(), before);
    });
  }
  // The position, if it is one of this tape.
  template <class T> const Position<T>& on(TapeOf<T>& tape) const {
    if (&tape != tape_.get()) throw std::invalid_argument("the mark is of another tape");
    return *static_cast<const Position<T>*>(position_.get());
  }

private:
  template <class T> void set(const Position<T>& position) {
    position_ = std::make_shared<Position<T>>(position);
    ++tape_->marks;
  }

  Ref<AnyTape> tape_;
  std::shared_ptr<void> position_; // knows how to delete what it holds
};

} // namespace burtorch_python
