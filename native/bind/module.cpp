#include "bind/bind.hpp"

NB_MODULE(_native, m) {
  m.doc() = "The native core of crfit.";
#ifndef CRFIT_CHECKED
  // nanobind reports instances that outlive the interpreter as leaks. Our objects form no reference cycles, but objects
  // held by a daemon thread (of joblib or a progress bar, for example) are never freed, and users can do nothing about
  // the message. Checked builds show it.
  nanobind::set_leak_warnings(false);
#endif
  bind_base(m);
  bind_text(m);
  bind_lattice(m);
  bind_tagging(m);
  bind_batch(m);
  bind_online(m);
  bind_margin(m);
  bind_dual(m);
}
