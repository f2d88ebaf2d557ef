// How long readers wait for a page, in turns with submissions and without. Turns on one server: what changes on the machine
// between two servers does not pass for an effect of submissions. One program in C for both kinds of client: a second one would
// hold up the first on their core.
// Usage: turns PORT PATH READERS READ_EVERY_MS REQUESTS CALLERS CALL_EVERY_MS WARM_MS CYCLES TURN_MS PAUSE_MS
// REQUESTS is a file of submissions, each with a NUL behind it; caller N sends the ones at N, N + CALLERS and so on, again and
// again. Everyone asks on a fixed schedule of its own, spread over its interval. While it warms up callers submit; a cycle is a
// turn with submissions, a pause in which what they left is flushed, and a turn without. The first tenth of a turn does not count.
// Prints latencies of pages, ms. One that an earlier answer held up counts from the moment that was planned.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MAX = 16384, CHUNK = 1 << 20, SAMPLES_MAX = 4 << 20 };
enum turn { WARM, WITH, PAUSE, WITHOUT };
typedef struct {
  int fd, index, is_caller, is_waiting, is_resting, is_late, head;
  long missing, asked;
  double due, from;
  char text[HEAD_MAX];
} client;
typedef struct { float *values; long count; } sample;

static char chunk[CHUNK], read_request[4096], **requests;
static int port, readers, callers, request_count, poll_fd;
static double read_every, call_every, warm, cycles, turn_ms, pause_ms, began;
static sample with, without;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/** The turn at a time since the beginning. Sets whether it counts. */
static enum turn turn_at(double ms, int *counts) {
  *counts = 0;
  if (ms < warm) return WARM;
  double into = ms - warm, cycle = 2 * turn_ms + pause_ms;
  into -= (long)(into / cycle) * cycle;
  if (into < turn_ms) { *counts = into > turn_ms / 10; return WITH; }
  into -= turn_ms + pause_ms;
  if (into < 0) return PAUSE;
  *counts = into > turn_ms / 10;
  return WITHOUT;
}

static void reconnect(client *c) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int on = 1;
  if (c->fd) close(c->fd);
  c->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) { perror("connect"); exit(1); }
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &event);
}

/** Sends the request that is due. A caller rests while there are no submissions. */
static void ask(client *c, double now) {
  int counts;
  enum turn turn = turn_at(c->due - began, &counts);
  // A timer may be late by some microseconds, which is not the server's; an earlier answer that came too late is.
  c->from = c->is_late ? c->due : now;
  c->due += c->is_caller ? call_every : read_every;
  if (c->is_caller && (turn == PAUSE || turn == WITHOUT)) { c->is_resting = 1; return; }
  // The server has closed a connection that was idle for so long.
  if (c->is_resting) reconnect(c);
  c->is_resting = 0;
  const char *text = c->is_caller ? requests[(c->index + callers * c->asked++) % request_count] : read_request;
  long length = strlen(text);
  c->is_waiting = 1;
  c->missing = -1;
  c->head = 0;
  if (write(c->fd, text, length) != length) { perror("write"); exit(1); }
}

static void answered(client *c, double now) {
  int counts;
  double planned = c->due - (c->is_caller ? call_every : read_every);
  enum turn turn = turn_at(planned - began, &counts);
  sample *to = turn == WITH ? &with : &without;
  if (!c->is_caller && counts && to->count < SAMPLES_MAX) to->values[to->count++] = now - c->from;
  c->is_waiting = 0;
  c->is_late = now > c->due;
}

static void take(client *c, long count) {
  if (c->missing < 0) {
    long room = HEAD_MAX - 1 - c->head, part = count < room ? count : room;
    memcpy(c->text + c->head, chunk, part);
    c->head += part;
    c->text[c->head] = 0;
    char *end = strstr(c->text, "\r\n\r\n");
    if (!end) return;
    if (strncmp(c->text, c->is_caller ? "HTTP/1.1 201" : "HTTP/1.1 200", 12)) { fprintf(stderr, "%.900s\n", c->text); exit(1); }
    char *length = strcasestr(c->text, "\r\ncontent-length:");
    c->missing = (length && length < end ? atol(length + 17) : 0) - (count - part) - (c->head - (end + 4 - c->text));
  } else {
    c->missing -= count;
  }
  if (c->missing == 0) answered(c, now_ms());
}

static void read_requests(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) { perror(path); exit(1); }
  fseek(file, 0, SEEK_END);
  long bytes = ftell(file);
  rewind(file);
  char *text = malloc(bytes + 1);
  if (fread(text, 1, bytes, file) != (size_t)bytes) { perror(path); exit(1); }
  text[bytes] = 0;
  requests = malloc((bytes + 1) * sizeof(char *));
  for (char *at = text; at < text + bytes; at += strlen(at) + 1) requests[request_count++] = at;
}

static int compare(const void *a, const void *b) { return (*(float *)a > *(float *)b) - (*(float *)a < *(float *)b); }
static double quantile(sample s, double part) { return s.count ? s.values[(long)(s.count * part)] : 0; }

int main(int argc, char **argv) {
  if (argc < 12) return 2;
  port = atoi(argv[1]);
  snprintf(read_request, sizeof read_request, "GET %s HTTP/1.1\r\nHost: bench\r\n\r\n", argv[2]);
  readers = atoi(argv[3]), read_every = atof(argv[4]), callers = atoi(argv[6]), call_every = atof(argv[7]);
  read_requests(argv[5]);
  warm = atof(argv[8]), cycles = atof(argv[9]), turn_ms = atof(argv[10]), pause_ms = atof(argv[11]);
  with.values = malloc(SAMPLES_MAX * sizeof(float)), without.values = malloc(SAMPLES_MAX * sizeof(float));
  poll_fd = epoll_create1(0);
  int count = readers + callers;
  client *clients = calloc(count, sizeof(client));
  began = now_ms();
  for (int i = 0; i < count; i++) {
    client *c = &clients[i];
    c->is_caller = i >= readers;
    c->index = c->is_caller ? i - readers : i;
    c->due = began + (c->is_caller ? call_every * c->index / callers : read_every * c->index / readers);
    reconnect(c);
  }
  double stop = began + warm + cycles * (2 * turn_ms + pause_ms);
  struct epoll_event events[64];
  for (double now = now_ms(); now < stop; now = now_ms()) {
    double next = stop;
    for (int i = 0; i < count; i++) {
      client *c = &clients[i];
      if (c->is_waiting) continue;
      if (c->due <= now) ask(c, now);
      if (!c->is_waiting && c->due < next) next = c->due;
    }
    double wait = next - now_ms();
    struct timespec timeout = {.tv_nsec = wait < 0 ? 0 : wait < 100 ? wait * 1e6 : 1e8};
    int ready = epoll_pwait2(poll_fd, events, 64, &timeout, NULL);
    for (int i = 0; i < ready; i++) {
      client *c = events[i].data.ptr;
      long got = read(c->fd, chunk, CHUNK);
      if (got > 0) take(c, got);
      else if (c->is_resting) epoll_ctl(poll_fd, EPOLL_CTL_DEL, c->fd, NULL);
      else { fprintf(stderr, "the server closed a connection\n"); return 1; }
    }
  }
  qsort(with.values, with.count, sizeof(float), compare);
  qsort(without.values, without.count, sizeof(float), compare);
  printf("{\"pages\":%ld,\"p50WithMs\":%.4f,\"p50WithoutMs\":%.4f,\"p99WithMs\":%.4f,\"p99WithoutMs\":%.4f}\n",
         with.count + without.count, quantile(with, 0.5), quantile(without, 0.5), quantile(with, 0.99), quantile(without, 0.99));
  return 0;
}
