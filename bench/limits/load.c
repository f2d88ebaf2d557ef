// A load over loopback: CONNECTIONS keep-alive connections, one request in flight each, whole answers counted by their
// Content-Length. Usage: load PORT PATH CONNECTIONS SECONDS. Prints answers, bytes, latencies and the seconds it took, which are
// more where no answer was whole by then. In C, so that the load is not slower than the servers it measures.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MAX = 16384, CHUNK = 1 << 20, SAMPLES_MAX = 8 << 20, FIRST_ANSWER_MAX_MS = 30000 };
typedef struct { int fd; long missing; int head; double sent; char text[HEAD_MAX]; } connection;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static char request[4096], chunk[CHUNK];
static int request_bytes;
static float *samples;
static long answers, bytes, sample_count;
static int compare(const void *a, const void *b) { return (*(float *)a > *(float *)b) - (*(float *)a < *(float *)b); }

static void ask(connection *c) {
  c->sent = now_ms();
  c->missing = -1;
  c->head = 0;
  if (write(c->fd, request, request_bytes) != request_bytes) { perror("write"); exit(1); }
}

static void answered(connection *c, int again) {
  answers++;
  if (sample_count < SAMPLES_MAX) samples[sample_count++] = now_ms() - c->sent;
  if (again) ask(c);
}

/** Takes what came; returns how many bytes belong to the body beyond the head. */
static void take(connection *c, char *data, long count, int again) {
  bytes += count;
  if (c->missing < 0) {
    long room = HEAD_MAX - 1 - c->head, part = count < room ? count : room;
    memcpy(c->text + c->head, data, part);
    c->head += part;
    c->text[c->head] = 0;
    char *end = strstr(c->text, "\r\n\r\n");
    if (!end) return;
    if (strncmp(c->text, "HTTP/1.1 200", 12) && strncmp(c->text, "HTTP/1.1 304", 12)) {
      fprintf(stderr, "%.200s\n", c->text);
      exit(1);
    }
    char *length = strcasestr(c->text, "\r\ncontent-length:");
    c->missing = (length && length < end ? atol(length + 17) : 0) - (count - part) - (c->head - (end + 4 - c->text));
  } else {
    c->missing -= count;
  }
  if (c->missing == 0) answered(c, again);
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  int port = atoi(argv[1]), count = atoi(argv[3]);
  double seconds = atof(argv[4]);
  request_bytes = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: bench\r\n\r\n", argv[2]);
  samples = malloc(SAMPLES_MAX * sizeof(float));
  int epoll = epoll_create1(0);
  connection *connections = calloc(count, sizeof(connection));
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  for (int i = 0; i < count; i++) {
    connection *c = &connections[i];
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) { perror("connect"); return 1; }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
  }
  double began = now_ms(), stop = began + seconds * 1e3;
  for (int i = 0; i < count; i++) ask(&connections[i]);
  struct epoll_event events[64];
  while (now_ms() < stop + (answers == 0 ? FIRST_ANSWER_MAX_MS : 0)) {
    int ready = epoll_wait(epoll, events, 64, 100);
    for (int i = 0; i < ready; i++) {
      connection *c = events[i].data.ptr;
      long got = read(c->fd, chunk, CHUNK);
      if (got <= 0) { fprintf(stderr, "the server closed a connection\n"); return 1; }
      take(c, chunk, got, 1);
    }
  }
  double took = (now_ms() - began) / 1e3;
  qsort(samples, sample_count, sizeof(float), compare);
  printf("{\"answers\":%ld,\"bytes\":%ld,\"p50Ms\":%.4f,\"p99Ms\":%.4f,\"seconds\":%.4f}\n", answers, bytes,
         sample_count ? samples[sample_count / 2] : 0, sample_count ? samples[(long)(sample_count * 0.99)] : 0, took);
  return 0;
}
