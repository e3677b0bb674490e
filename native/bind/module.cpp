#include "bind/bind.hpp"

NB_MODULE(_native, m) {
  m.doc() = "The native core of crfit.";
  bind_base(m);
  bind_text(m);
  bind_lattice(m);
  bind_batch(m);
  bind_online(m);
  bind_margin(m);
  bind_dual(m);
}
