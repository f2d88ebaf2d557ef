// The limit of a large answer: an epoll loop that sends one ready answer to whoever asks, without looking at the question.
// Usage: http BODY_BYTES. Prints its port.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

typedef struct { int fd; long at; } connection;

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  long body = argc > 1 ? atol(argv[1]) : 36000;
  char *answer = malloc(body + 256);
  long size = sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: %ld\r\n\r\n", body);
  memset(answer + size, 'x', body);
  size += body;
  int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 128)) return 1;
  getsockname(listener, (struct sockaddr *)&address, &length);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  connection self = {listener, 0};
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &self}, events[64];
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  char request[65536];
  for (;;) {
    int ready = epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < ready; i++) {
      connection *c = events[i].data.ptr;
      if (c == &self) {
        connection *made = calloc(1, sizeof(connection));
        made->fd = accept(listener, 0, 0);
        made->at = size;
        fcntl(made->fd, F_SETFL, O_NONBLOCK);
        event = (struct epoll_event){.events = EPOLLIN, .data.ptr = made};
        epoll_ctl(epoll, EPOLL_CTL_ADD, made->fd, &event);
        continue;
      }
      if (c->at == size) {
        if (read(c->fd, request, sizeof request) <= 0) { close(c->fd); free(c); continue; }
        c->at = 0;
      }
      while (c->at < size) {
        long sent = write(c->fd, answer + c->at, size - c->at);
        if (sent < 0) break;
        c->at += sent;
      }
      if (c->at < size && errno != EAGAIN) { close(c->fd); free(c); continue; }
      event = (struct epoll_event){.events = c->at < size ? EPOLLOUT : EPOLLIN, .data.ptr = c};
      epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
    }
  }
}
