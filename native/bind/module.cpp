#include "bind/bind.hpp"

NB_MODULE(_native, m) {
  m.doc() = "The native core of crfit.";
#ifndef CRFIT_CHECKED
  // nanobind reports instances that outlive the interpreter as leaks. Ours hold NumPy arrays and each other, never a
  // reference back, so that no cycle goes through them; but what a daemon thread holds (of joblib or a progress bar,
  // say) is never freed, and a user of such a library can do nothing about the message. Checked builds show it.
  nanobind::set_leak_warnings(false);
#endif
  bind_base(m);
  bind_text(m);
  bind_lattice(m);
  bind_batch(m);
  bind_online(m);
  bind_margin(m);
  bind_dual(m);
}
