#include "bind.hpp"

NB_MODULE(_native, m) {
  m.doc() = "The native core of crfit.";
  bind_text(m);
  bind_sequences(m);
  bind_engine(m);
  bind_vectors(m);
  bind_online(m);
  bind_online_meta(m);
  bind_margin(m);
  bind_dual(m);
}
