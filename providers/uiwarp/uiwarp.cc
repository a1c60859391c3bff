// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// libuiwarp.so.0: says which private ABI it speaks, and what the provider has to say; everything
// else is in the layers.
#include <cstdarg>
#include <cstdlib>

#include "core/explain_of.h"
#include "uiwarp/uiwarp-abi.h"

int uiwarp_abi_version(void) {
  return UIWARP_ABI_VERSION;
}

int uiwarp_refuse(int error, const char* sentence, ...) {
  static constinit uiw::core::Told told;
  va_list arguments;
  va_start(arguments, sentence);
  uiw::core::explain_with(told, sentence, arguments);
  va_end(arguments);
  return error;
}

int uiwarp_write_refused(uint32_t, uint32_t, uint64_t, int) {
  return 0;
}

int uiwarp_peer_refused(uint32_t, uint32_t, uint64_t, uint64_t) {
  return 0;
}
void uiwarp_receive_awaited(uint32_t, uint64_t, int) {}
void uiwarp_receives_dropped(uint32_t, const uint64_t*, uint32_t) {}
int uiwarp_datagram_too_long(uint32_t, uint64_t, uint64_t) {
  return 0;
}
void uiwarp_cq_event_taken(uiwarp_cq*) {}
void uiwarp_connected(uint32_t, const sockaddr_storage*, const sockaddr_storage*) {}
void uiwarp_agreed(uint32_t, const uiwarp_agreement*) {}
void uiwarp_fpdu_passed(uint32_t, const uiwarp_fpdu*) {}
void uiwarp_async_event_taken(uint32_t, uint32_t) {}
void uiwarp_cm_event_taken(uint64_t, uint32_t, int) {}
void uiwarp_cm_id_destroyed(uint64_t, uint32_t) {}
uiwarp_connect_fate uiwarp_cm_connecting(uint16_t, uint32_t) {
  return UIWARP_CONNECT_GOES_ON;
}
uiwarp_connect_fate uiwarp_cm_accepting(const sockaddr_storage*, const sockaddr_storage*) {
  return UIWARP_CONNECT_GOES_ON;
}

uiwarp_datagram_fate uiwarp_datagram_arriving(uint32_t, uint64_t*) {
  return UIWARP_DATAGRAM_ARRIVES;
}

void uiwarp_object_free(void* object) {
  free(object);
}

void uiwarp_acks_missing(const char* call, const char* function, int32_t count) {
  static constinit uiw::core::Told told;
  if (count < 0) {
    uiw::core::refuse_of(call, told, 0,
                         "%s waits without end: %d more events of this object were acknowledged "
                         "than the program got (%s)",
                         call, -count, function);
    return;
  }
  uiw::core::refuse_of(call, told, 0,
                       "%s waits: of the events of this object that the program got, %d are not "
                       "acknowledged (%s)",
                       call, count, function);
}
