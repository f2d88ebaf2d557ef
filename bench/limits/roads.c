// All roads of a server at once, in one thread: pushes, pages, snapshots, submissions, each on connections of its own and on a fixed
// schedule, and followers that read what they get.
// Usage: roads PORT WARM_MS MS FOLLOWERS FOLLOW_FILE ROAD..., ROAD being NAME CONNECTIONS PER_SECOND STATUS FILE
// FILE has a road's requests, each with a NUL behind it; connection N sends the ones at N, N + CONNECTIONS and so on, again and
// again. Thirteen @ in a request become the time at which it is sent, Unix ms.
// An answer's latency counts from when its request was due, also where an earlier answer held it up. Prints for each road latencies
// in ms, how many answers came and how many others than STATUS, both after WARM_MS and the second for each second too (with the p99 of
// the first), and how long what was due at the end had waited; of each tenth follower how old the newest row of a read is.
// To read what a hundred followers get takes milliseconds, which no answer may wait for: a few are read at a time, after the roads.
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

enum { HEAD_MAX = 16384, CHUNK = 1 << 20, SAMPLES_MAX = 8 << 20, STAMP = 13, ROADS_MAX = 8, FOLLOWERS_A_TURN = 4, AGED_EACH = 10, EVENTS_MAX = 1024 };
static const char TRADED_AT[] = "\"last_trade_timestamp\":";
/** `at`: when, s after the warm-up; of roads alone. */
typedef struct { float *values, *at; long count; } sample;
/** `stamps`: where its time belongs. */
typedef struct { char *text; long length, stamp_count, *stamps; } request;
typedef struct {
  const char *name, *status;
  int connections, request_count;
  double every;
  request *requests;
  sample latencies;
  long answers, refused, *refused_by_second;
  double backlog;
} road;
typedef struct {
  int fd, index, is_waiting, is_refused, head;
  /** Followers have none. */
  road *road;
  long missing, asked, written;
  double due;
  const request *request;
  char text[HEAD_MAX];
} client;

static char chunk[CHUNK + 1];
static int port, poll_fd;
static double began, warm_until, stop_at;
static road roads[ROADS_MAX];
static sample ages;
/** By the wall clock, ms. */
static double began_at;
static long follow_bytes, follow_drops;

static double clock_ms(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}
static double now_ms(void) { return clock_ms(CLOCK_MONOTONIC); }

static void add(sample *s, double value) {
  if (s->count < SAMPLES_MAX) s->values[s->count++] = value;
}

static void watch(client *c, uint32_t events, int how) {
  struct epoll_event event = {.events = events, .data.ptr = c};
  epoll_ctl(poll_fd, how, c->fd, &event);
}

static void open_connection(client *c) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int on = 1;
  c->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) { perror("connect"); exit(1); }
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  watch(c, EPOLLIN, EPOLL_CTL_ADD);
}

/** Writes what the socket takes; the rest follows once it takes more. */
static void write_on(client *c) {
  long sent = send(c->fd, c->request->text + c->written, c->request->length - c->written, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) c->written += sent;
  watch(c, c->written < c->request->length ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
}

static void ask(client *c) {
  road *r = c->road;
  const request *asked = c->request = &r->requests[(c->index + r->connections * c->asked++) % r->request_count];
  char stamp[STAMP + 1];
  snprintf(stamp, sizeof stamp, "%013.0f", clock_ms(CLOCK_REALTIME));
  for (long i = 0; i < asked->stamp_count; i++) memcpy(asked->text + asked->stamps[i], stamp, STAMP);
  c->is_waiting = 1;
  c->missing = -1;
  c->head = 0;
  c->written = 0;
  write_on(c);
}

static void answered(client *c) {
  road *r = c->road;
  double now = now_ms();
  if (c->due >= warm_until) {
    double at = (c->due - warm_until) / 1e3;
    if (c->is_refused) {
      if (r->refused++ == 0) fprintf(stderr, "%s: %.300s\n", r->name, c->text);
      r->refused_by_second[(long)at]++;
    } else {
      if (r->latencies.count < SAMPLES_MAX) r->latencies.at[r->latencies.count] = at;
      add(&r->latencies, now - c->due);
      r->answers++;
    }
  }
  c->due += r->every;
  c->is_waiting = 0;
}

static void take(client *c, long count) {
  if (c->missing < 0) {
    long room = HEAD_MAX - 1 - c->head, part = count < room ? count : room;
    memcpy(c->text + c->head, chunk, part);
    c->head += part;
    c->text[c->head] = 0;
    char *end = strstr(c->text, "\r\n\r\n");
    if (!end) return;
    c->is_refused = strncmp(c->text + 9, c->road->status, 3) != 0;
    char *length = strcasestr(c->text, "\r\ncontent-length:");
    c->missing = (length && length < end ? atol(length + 17) : 0) - (count - part) - (c->head - (end + 4 - c->text));
  } else {
    c->missing -= count;
  }
  if (c->missing == 0) answered(c);
}

/** How old the newest row of what was read is. A submission changes a row too: tokens that nobody trades here are left out. */
static void add_age(long count) {
  enum { NAME = sizeof TRADED_AT - 1 };
  double newest = 0;
  chunk[count] = 0;
  for (char *at = chunk; (at = memmem(at, chunk + count - at, TRADED_AT, NAME)); at += NAME) {
    double traded = atof(at + NAME);
    if (at + NAME + STAMP < chunk + count && traded > newest && traded >= began_at) newest = traded;
  }
  if (newest > 0) add(&ages, clock_ms(CLOCK_REALTIME) - newest);
}

/** Reads requests, and finds where in each its time belongs. */
static void read_requests(road *r, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) { perror(path); exit(1); }
  char *line = NULL;
  size_t room = 0;
  while (getdelim(&line, &room, 0, file) > 0) {
    request q = {.text = strdup(line), .length = strlen(line), .stamps = malloc((strlen(line) / STAMP + 1) * sizeof(long))};
    for (char *at = q.text; (at = strstr(at, "@@@@@@@@@@@@@")); at += STAMP) q.stamps[q.stamp_count++] = at - q.text;
    r->requests = realloc(r->requests, (r->request_count + 1) * sizeof(request));
    r->requests[r->request_count++] = q;
  }
  free(line);
  fclose(file);
  if (r->request_count == 0) { fprintf(stderr, "%s is empty\n", path); exit(1); }
}

static int compare(const void *a, const void *b) { return (*(float *)a > *(float *)b) - (*(float *)a < *(float *)b); }
static void print_sample(const char *before, sample *s) {
  qsort(s->values, s->count, sizeof(float), compare);
#define AT(part) (s->count ? s->values[(long)((s->count - 1) * part)] : 0)
  printf("%s\"count\":%ld,\"p50\":%.4f,\"p99\":%.4f,\"p999\":%.4f,\"max\":%.4f", before, s->count, AT(0.5), AT(0.99), AT(0.999), AT(1));
}

/** What became of each second of a road; before its sample is sorted. */
static void print_seconds(road *r, double ms) {
  long seconds = ms / 1e3;
  float *values = malloc(r->latencies.count * sizeof(float) + 1);
  printf(",\"seconds\":[");
  for (long second = 0; second < seconds; second++) {
    long count = 0;
    for (long i = 0; i < r->latencies.count; i++)
      if ((long)r->latencies.at[i] == second) values[count++] = r->latencies.values[i];
    qsort(values, count, sizeof(float), compare);
    double p99 = count ? values[(long)((count - 1) * 0.99)] : 0;
    printf("%s{\"count\":%ld,\"refused\":%ld,\"p99\":%.4f}", second ? "," : "", count, r->refused_by_second[second], p99);
  }
  printf("]");
  free(values);
}

static void report(double ms) {
  printf("{\"seconds\":%.3f,", ms / 1e3);
  for (road *r = roads; r->name; r++) {
    printf("\"%s\":{\"refused\":%ld,\"backlogMs\":%.1f", r->name, r->refused, r->backlog);
    print_seconds(r, ms);
    print_sample(",", &r->latencies);
    printf("},");
  }
  print_sample("\"follow\":{", &ages);
  printf(",\"bytes\":%ld,\"drops\":%ld}}\n", follow_bytes, follow_drops);
}

/** A follower that is too slow is dropped by its server, and comes back. */
static void lost(client *c) {
  if (c->road) { fprintf(stderr, "the server closed a connection of %s\n", c->road->name); exit(1); }
  close(c->fd);
  if (now_ms() >= warm_until) follow_drops++;
  c->written = 0;
  open_connection(c);
  write_on(c);
}

/** Reads what a follower was sent. @returns false where it was dropped */
static int follow(client *c) {
  int is_aged = c->index % AGED_EACH == 0;
  long got = recv(c->fd, chunk, CHUNK, is_aged ? 0 : MSG_TRUNC);
  if (got <= 0) return 0;
  if (now_ms() < warm_until) return 1;
  follow_bytes += got;
  if (is_aged) add_age(got);
  return 1;
}

/** Asks what is due. @returns when the next is */
static double ask_due(client *clients, int count) {
  double next = stop_at, now = now_ms();
  for (int i = 0; i < count; i++) {
    client *c = &clients[i];
    if (!c->road || c->is_waiting) continue;
    if (c->due <= now) ask(c);
    else if (c->due < next) next = c->due;
  }
  return next;
}

static void run(client *clients, int count) {
  struct epoll_event events[EVENTS_MAX];
  while (now_ms() < stop_at) {
    double wait = ask_due(clients, count) - now_ms();
    struct timespec timeout = {.tv_nsec = wait < 0 ? 0 : wait < 100 ? wait * 1e6 : 1e8};
    int ready = epoll_pwait2(poll_fd, events, EVENTS_MAX, &timeout, NULL), followed = 0;
    for (int i = 0; i < ready; i++) {
      client *c = events[i].data.ptr;
      if (events[i].events & EPOLLOUT) write_on(c);
      if (!c->road || !(events[i].events & ~EPOLLOUT)) continue;
      long got = read(c->fd, chunk, CHUNK);
      if (got > 0) take(c, got);
      else lost(c);
    }
    for (int i = 0; i < ready && followed < FOLLOWERS_A_TURN; i++) {
      client *c = events[i].data.ptr;
      if (c->road || !(events[i].events & ~EPOLLOUT)) continue;
      if (!follow(c)) lost(c);
      followed++;
    }
  }
}

int main(int argc, char **argv) {
  if (argc < 6 || (argc - 6) % 5 || (argc - 6) / 5 >= ROADS_MAX) return 2;
  port = atoi(argv[1]);
  began_at = clock_ms(CLOCK_REALTIME);
  double warm = atof(argv[2]), ms = atof(argv[3]);
  int followers = atoi(argv[4]), count = followers;
  road follow_road = {0};
  read_requests(&follow_road, argv[5]);
  for (int i = 6, at = 0; i < argc; i += 5, at++) {
    road *r = &roads[at];
    *r = (road){.name = argv[i], .connections = atoi(argv[i + 1]), .status = argv[i + 3]};
    r->every = r->connections * 1e3 / atof(argv[i + 2]);
    r->latencies.values = malloc(SAMPLES_MAX * sizeof(float));
    r->latencies.at = malloc(SAMPLES_MAX * sizeof(float));
    r->refused_by_second = calloc(ms / 1e3 + 1, sizeof(long));
    read_requests(r, argv[i + 4]);
    count += r->connections;
  }
  ages.values = malloc(SAMPLES_MAX * sizeof(float));
  poll_fd = epoll_create1(0);
  client *clients = calloc(count, sizeof(client));
  for (int i = 0; i < followers; i++) {
    client *c = &clients[i];
    c->index = i;
    open_connection(c);
    c->request = &follow_road.requests[0];
    write_on(c);
  }
  began = now_ms(), warm_until = began + warm, stop_at = warm_until + ms;
  client *c = clients + followers;
  for (road *r = roads; r->name; r++)
    for (int i = 0; i < r->connections; i++, c++) {
      c->road = r, c->index = i;
      c->due = began + r->every * i / r->connections;
      open_connection(c);
    }
  run(clients, count);
  for (c = clients + followers; c < clients + count; c++)
    if (stop_at - c->due > c->road->backlog) c->road->backlog = stop_at - c->due;
  report(ms);
  return 0;
}
