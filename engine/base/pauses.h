// What the thread of a pass does between two parts of it.
#ifndef ENCODERD_ENGINE_BASE_PAUSES_H_
#define ENCODERD_ENGINE_BASE_PAUSES_H_

namespace encoderd {

// Called on the thread of the pass alone.
class Pauses {
 public:
  virtual ~Pauses() = default;
  // Asked many times a pass: cheap.
  virtual bool Wanted() = 0;
  // May run passes of other Sessions.
  virtual void Run() noexcept = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_PAUSES_H_
