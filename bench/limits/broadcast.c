// The limit of a follow stream: takes the feed's trades over a WebSocket, copies the price of each into a ready row and
// sends the rows to every follower. It keeps no market, parses nothing else and reads no request.
// Usage: broadcast ROW_BYTES. Prints its port.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { FOLLOWERS_MAX = 4096, IN_MAX = 1 << 22, OUT_MAX = 1 << 23 };
static const char KEY[] = "\"priceUsd\":";
static const char UPGRADE[] =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
static const char HEAD[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n";

static int followers[FOLLOWERS_MAX], follower_count, feed = -1;
static unsigned char in[IN_MAX];
static long in_bytes;
static char out[OUT_MAX], *filler;
static long out_bytes, row_bytes;

/** Waits while a follower's socket is full: the load reads without ever waiting for us. */
static int send_all(int fd, const char *bytes, long count) {
  while (count > 0) {
    long sent = send(fd, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) { poll(&(struct pollfd){fd, POLLOUT, 0}, 1, 1000); continue; }
    if (sent <= 0) return 0;
    bytes += sent;
    count -= sent;
  }
  return 1;
}

static void add_row(const char *price, long digits) {
  long rest = row_bytes - (long)(sizeof KEY - 1) - digits - 5;
  if (out_bytes + row_bytes > OUT_MAX || rest < 0) { fprintf(stderr, "a frame is too large\n"); exit(1); }
  char *to = out + out_bytes;
  *to++ = '{';
  to = mempcpy(to, KEY, sizeof KEY - 1);
  to = mempcpy(to, price, digits);
  to = mempcpy(to, ",\"", 2);
  to = mempcpy(to, filler, rest);
  mempcpy(to, "\"}\n", 3);
  out_bytes = to + 3 - out;
}

static void add_rows(const char *text, long count) {
  const char *end = text + count, *at = text;
  while ((at = memmem(at, end - at, KEY, sizeof KEY - 1))) {
    at += sizeof KEY - 1;
    add_row(at, strspn(at, "0123456789.e-"));
  }
}

/** Takes every whole frame; masks are zero, as the load sends them. */
static void take_frames(void) {
  long at = 0;
  for (;;) {
    long head = 6, left = in_bytes - at, size;
    if (left < 14) break;
    size = in[at + 1] & 127;
    if (size == 126) { size = in[at + 2] << 8 | in[at + 3]; head = 8; }
    else if (size == 127) { size = 0; for (int i = 2; i < 10; i++) size = size << 8 | in[at + i]; head = 14; }
    if (left < head + size) break;
    add_rows((char *)in + at + head, size);
    at += head + size;
  }
  memmove(in, in + at, in_bytes - at);
  in_bytes -= at;
}

static void broadcast(void) {
  for (int i = 0; i < follower_count; i++)
    if (out_bytes > 0) send_all(followers[i], out, out_bytes);
  out_bytes = 0;
}

static void forget(int fd) {
  for (int i = 0; i < follower_count; i++)
    if (followers[i] == fd) followers[i] = followers[--follower_count];
  close(fd);
}

static void greet(int fd) {
  char request[8192];
  long got = read(fd, request, sizeof request - 1);
  if (got <= 0) { forget(fd); return; }
  request[got] = 0;
  if (strcasestr(request, "\r\nupgrade: websocket")) {
    feed = fd;
    in_bytes = 0;
    send_all(fd, UPGRADE, sizeof UPGRADE - 1);
  } else if (follower_count < FOLLOWERS_MAX) {
    followers[follower_count++] = fd;
    send_all(fd, HEAD, sizeof HEAD - 1);
  }
}

int main(int argc, char **argv) {
  row_bytes = argc > 1 ? atol(argv[1]) : 360;
  filler = malloc(row_bytes);
  memset(filler, 'x', row_bytes);
  int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) return 1;
  getsockname(listener, (struct sockaddr *)&address, &length);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[64];
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int ready = epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd;
      if (fd == listener) {
        int made = accept(listener, 0, 0);
        setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        fcntl(made, F_SETFL, O_NONBLOCK);
        event = (struct epoll_event){.events = EPOLLIN, .data.fd = made};
        epoll_ctl(epoll, EPOLL_CTL_ADD, made, &event);
      } else if (fd == feed) {
        long got = read(fd, in + in_bytes, IN_MAX - in_bytes);
        if (got <= 0) { close(fd); feed = -1; continue; }
        in_bytes += got;
        take_frames();
        broadcast();
      } else {
        greet(fd);
      }
    }
  }
}
