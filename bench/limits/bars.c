// The limit of ticks → bars: the same cascade in C, nine timeframes, rings of 128 bars. Usage: bars TOKENS TICKS SPAN_MS.
// The ticks are those of bench/questions/bars.bench.ts: the same generator from the same seed. Prints seconds and a sum.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TIMEFRAMES = 9, RING = 128 };
static const int64_t LENGTH_MS[TIMEFRAMES] = {1000, 5000, 15000, 60000, 300000, 900000, 3600000, 14400000, 86400000};
typedef struct { int64_t t; double o, h, l, c, v, buys; int64_t n; } bar;

static uint32_t state;
static double next(void) {
  state += 0x6d2b79f5u;
  uint32_t m = (state ^ (state >> 15)) * (1u | state);
  m = (m + (m ^ (m >> 7)) * (61u | m)) ^ m;
  return (double)(m ^ (m >> 14)) / 4294967296.0;
}

static bar *open_bars, *rings;
static uint32_t *counts;

static void fold(uint32_t token, int tf, const bar *closed) {
  size_t at = (size_t)token * TIMEFRAMES + tf;
  rings[at * RING + (counts[at]++ & (RING - 1))] = *closed;
  if (tf + 1 == TIMEFRAMES) return;
  bar *up = &open_bars[at + 1];
  int64_t t = closed->t - closed->t % LENGTH_MS[tf + 1];
  if (up->t == t) {
    if (closed->h > up->h) up->h = closed->h;
    if (closed->l < up->l) up->l = closed->l;
    up->c = closed->c;
    up->v += closed->v;
    up->buys += closed->buys;
    up->n += closed->n;
    return;
  }
  if (up->t != 0) fold(token, tf + 1, up);
  *up = *closed;
  up->t = t;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  uint32_t tokens = atoi(argv[1]);
  int64_t ticks = atoll(argv[2]), span = atoll(argv[3]), start = 1772000000000LL;
  open_bars = calloc((size_t)tokens * TIMEFRAMES, sizeof(bar));
  rings = calloc((size_t)tokens * TIMEFRAMES * RING, sizeof(bar));
  counts = calloc((size_t)tokens * TIMEFRAMES, sizeof(uint32_t));
  uint32_t *token = malloc(ticks * 4);
  double *price = malloc(ticks * 8), *volume = malloc(ticks * 8);
  int64_t *ts = malloc(ticks * 8);
  state = 1;
  for (int64_t i = 0; i < ticks; i++) {
    double r = next();
    token[i] = (uint32_t)(tokens * r * r);
    price[i] = 1 + next();
    volume[i] = 100 * next();
    ts[i] = start + i * span / ticks;
  }
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int64_t i = 0; i < ticks; i++) {
    bar *now = &open_bars[(size_t)token[i] * TIMEFRAMES];
    int64_t t = ts[i] - ts[i] % 1000;
    if (now->t == t) {
      if (price[i] > now->h) now->h = price[i];
      if (price[i] < now->l) now->l = price[i];
      now->c = price[i];
      now->v += volume[i];
      now->n++;
      continue;
    }
    if (now->t != 0) fold(token[i], 0, now);
    *now = (bar){t, price[i], price[i], price[i], price[i], volume[i], 0, 1};
  }
  clock_gettime(CLOCK_MONOTONIC, &b);
  // What the other candidates sum too: trades and volumes of all, whichever bar they are in.
  double v = 0;
  int64_t n = 0;
  for (uint32_t k = 0; k < tokens; k++)
    for (int tf = 0; tf < TIMEFRAMES; tf++) {
      v += open_bars[(size_t)k * TIMEFRAMES + tf].v;
      n += open_bars[(size_t)k * TIMEFRAMES + tf].n;
    }
  double seconds = (b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) / 1e9;
  printf("{\"metrics\":{\"ticksPerSecond\":%.0f},\"checksum\":\"%lld\"}\n", ticks / seconds, (long long)(n + (int64_t)(v / 1e6)));
  return 0;
}
