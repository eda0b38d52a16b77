// What the thread of a pass does between two parts of it.
#ifndef ENCODERD_ENGINE_BASE_PAUSES_H_
#define ENCODERD_ENGINE_BASE_PAUSES_H_

namespace encoderd {

// Called only on the thread of the pass.
class Pauses {
 public:
  virtual ~Pauses() = default;
  // Called many times per pass: cheap.
  virtual bool Wanted() = 0;
  // May run passes of other Sessions.
  virtual void Run() noexcept = 0;
};

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_PAUSES_H_
