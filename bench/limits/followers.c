// A feed and its followers over loopback, in one thread of one process, so that both read the same clock: it pushes RATE
// trades a second in batches of a millisecond, each priced with the microsecond at which it was sent, no token twice
// within MINTS trades, over connections that it holds, and reads every stream, looking for the price in each row. Prints
// latencies, rows sent and seen, and the CPU seconds of the server and its own. In C, so that it is not slower than the
// servers it measures.
// Usage: followers FEED FEED_PORT FOLLOW_PORT PATH FOLLOWERS RATE SECONDS MINTS_FILE SERVER_PID ROW_BYTES
// FEED: `ws` NDJSON frames to the address of the push; `lines` the same NDJSON over TCP. ROW_BYTES: what a row has at least.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MINT_MAX = 48, MINTS_MAX = 100000, READ_BYTES = 1 << 18, CARRY = 48, BUCKET_US = 10, BUCKETS = 1 << 20, BATCH_MAX = 200 };
/** Before what is measured, as a share of it: until then compilers and collectors of the servers have found their pace. */
static const double WARM_SHARE = 5 / 3.;
/** How long rows that are still on their way are waited for. */
static const double LATE_US = 10e6;
typedef struct { int fd; int carried; char carry[CARRY]; } stream;

static char mints[MINTS_MAX][MINT_MAX];
static int mint_count, row_bytes;
static long histogram[BUCKETS], rows_sent, rows_seen;
static char frame[1 << 20], buffer[READ_BYTES + CARRY + 1];
static double measure_from_us, measure_until_us;
static const char PRICE[] = "\"priceUsd\":";

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int connect_to(int port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct timeval patience = {.tv_sec = 10};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(fd, (struct sockaddr *)&address, sizeof address)) { perror("connect"); exit(1); }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

static void send_all(int fd, const char *data, long size) {
  while (size > 0) {
    long sent = write(fd, data, size);
    if (sent < 0 && errno == EAGAIN) continue;
    if (sent <= 0) { perror("write"); exit(1); }
    data += sent;
    size -= sent;
  }
}

static double cpu_seconds(int pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE *file = fopen(path, "r");
  if (!file || !fgets(text, sizeof text, file)) { perror(path); exit(1); }
  fclose(file);
  unsigned long user, system;
  sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return (user + system) / 100.0;
}

static void load_mints(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) { perror(path); exit(1); }
  while (mint_count < MINTS_MAX && fscanf(file, "%47s", mints[mint_count]) == 1) mint_count++;
  fclose(file);
}

/** Counts the rows in what came, each by its price; what may be the start of a row's price waits for the rest. */
static void take(stream *s, double now) {
  long bytes = read(s->fd, buffer + s->carried, READ_BYTES);
  if (bytes <= 0) {
    if (bytes < 0 && errno == EAGAIN) return;
    fprintf(stderr, "a stream ended\n");
    exit(1);
  }
  memcpy(buffer, s->carry, s->carried);
  long size = s->carried + bytes;
  char *at = buffer, *end = buffer + size;
  for (;;) {
    char *found = memmem(at, end - at, PRICE, sizeof PRICE - 1);
    if (!found || end - found < (long)sizeof PRICE + 20) {
      at = found ? found : (end - at > (long)sizeof PRICE ? end - sizeof PRICE : at);
      break;
    }
    at = found + sizeof PRICE - 1;
    double sent = 0;
    for (; *at >= '0' && *at <= '9'; at++) sent = sent * 10 + (*at - '0');
    // The next price is a row away: most of a row need not be searched.
    if (at + row_bytes / 2 < end) at += row_bytes / 2;
    if (sent < measure_from_us || sent >= measure_until_us) continue;
    long bucket = (now - sent) / BUCKET_US;
    histogram[bucket < 0 ? 0 : bucket < BUCKETS ? bucket : BUCKETS - 1]++;
    rows_seen++;
  }
  s->carried = end - at;
  memcpy(s->carry, at, s->carried);
}

static void push(int fd, int is_ws, long from, int count) {
  char *at = frame + 16;
  double us = now_us();
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  long ms = wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
  for (int i = 0; i < count; i++)
    at += sprintf(at, "{\"type\":\"trade\",\"mint\":\"%s\",\"ts\":%ld,\"side\":\"buy\",\"tokenAmount\":1,\"priceUsd\":%.0f}\n",
                  mints[(from + i) % mint_count], ms, us);
  if (us >= measure_from_us && us < measure_until_us) rows_sent += count;
  long size = at - frame - 16;
  if (!is_ws) { send_all(fd, frame + 16, size); return; }
  // A masked text frame whose mask is zero (RFC 6455, section 5.2).
  char *head = frame + 16 - 8;
  if (size < 126) { head = frame + 16 - 6; head[1] = 0x80 | size; memset(head + 2, 0, 4); }
  else { head[1] = (char)(0x80 | 126); head[2] = size >> 8; head[3] = size & 255; memset(head + 4, 0, 4); }
  head[0] = (char)0x81;
  send_all(fd, head, frame + 16 + size - head);
}

static double own_cpu(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double quantile(double share) {
  long wanted = rows_seen * share, sum = 0;
  for (long i = 0; i < BUCKETS; i++) if ((sum += histogram[i]) > wanted) return (i + 0.5) * BUCKET_US / 1e3;
  return -1;
}

int main(int argc, char **argv) {
  if (argc < 11) { fprintf(stderr, "usage: see the source\n"); return 2; }
  int is_ws = !strcmp(argv[1], "ws"), feed_port = atoi(argv[2]), follow_port = atoi(argv[3]), followers = atoi(argv[5]);
  double rate = atof(argv[6]), seconds = atof(argv[7]);
  int pid = atoi(argv[9]);
  row_bytes = atoi(argv[10]);
  load_mints(argv[8]);
  int epoll = epoll_create1(0);
  stream *streams = calloc(followers + 1, sizeof(stream));
  char request[4096];
  int request_bytes = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", argv[4]);
  for (int i = 0; i < followers; i++) {
    streams[i].fd = connect_to(follow_port);
    send_all(streams[i].fd, request, request_bytes);
    // Whoever is not yet answered does not yet follow.
    if (recv(streams[i].fd, buffer, 1, MSG_PEEK) <= 0) { fprintf(stderr, "a stream is not answered\n"); return 1; }
    fcntl(streams[i].fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &streams[i]};
    epoll_ctl(epoll, EPOLL_CTL_ADD, streams[i].fd, &event);
  }
  int feed = connect_to(feed_port);
  if (is_ws) {
    const char upgrade[] = "GET /api/v1/ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer bench\r\nUpgrade: websocket\r\n"
      "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n";
    send_all(feed, upgrade, sizeof upgrade - 1);
    if (read(feed, buffer, READ_BYTES) <= 0 || strncmp(buffer, "HTTP/1.1 101", 12)) { fprintf(stderr, "%.200s\n", buffer); return 1; }
  }
  fcntl(feed, F_SETFL, O_NONBLOCK);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &streams[followers]}, events[256];
  streams[followers].fd = feed;
  epoll_ctl(epoll, EPOLL_CTL_ADD, feed, &event);

  double start = now_us(), warm_us = WARM_SHARE * seconds * 1e6;
  measure_from_us = start + warm_us;
  measure_until_us = measure_from_us + seconds * 1e6;
  double cpu_before = 0, cpu_after = 0, own_before = 0, own_after = 0;
  long sent = 0;
  for (;;) {
    double now = now_us();
    if (!cpu_before && now >= measure_from_us) { cpu_before = cpu_seconds(pid); own_before = own_cpu(); }
    if (!cpu_after && now >= measure_until_us) { cpu_after = cpu_seconds(pid); own_after = own_cpu(); }
    if (now >= measure_until_us && (rows_seen >= rows_sent * followers || now > measure_until_us + LATE_US)) break;
    long due = (long)((now - start) / 1e3) * rate / 1e3;
    if (due > sent && now < measure_until_us) {
      int count = due - sent > BATCH_MAX ? BATCH_MAX : due - sent;
      push(feed, is_ws, sent, count);
      sent += count;
    }
    double next_us = start + ((long)((now - start) / 1e3) + 1) * 1e3 - now_us();
    int ready = epoll_wait(epoll, events, 256, next_us > 500 ? 1 : 0);
    now = now_us();
    for (int i = 0; i < ready; i++) {
      stream *s = events[i].data.ptr;
      if (s->fd == feed) { while (read(feed, buffer, READ_BYTES) > 0); continue; }
      take(s, now);
    }
  }
  printf("{\"p50Ms\":%g,\"p99Ms\":%g,\"p999Ms\":%g,\"rows\":%ld,\"sent\":%ld,\"cpuSeconds\":%g,\"loadCpuSeconds\":%g}\n", quantile(.5),
         quantile(.99), quantile(.999), rows_seen, rows_sent, cpu_after - cpu_before, own_after - own_before);
  return 0;
}
