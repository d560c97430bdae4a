/* Clients that ask the same thing over and over: one thread, epoll, keep-alive, each sends again when its answer is
 * whole, or with --rate when its turn comes: so many requests a second over all connections.
 *
 * usage: load --port P --request FILE [--host 127.0.0.1] [--connections N] [--seconds S] [--warmup S] [--stagger US]
 *             [--end TEXT] [--events-min N] [--rate R]
 *
 * FILE holds the whole request, head and body. An answer is good when its status is 2xx, TEXT was in it, and it had at
 * least N "data:" lines. "@@" and 16 digits in such a line are the time the model sent it (ns, CLOCK_MONOTONIC), which
 * gives the time in transit. Prints one JSON object; *_all counts from the start, the rest only after the warm-up.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  uint64_t *values;
  size_t count, room;
} samples;

enum { HEAD, COUNTED, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER, UNTIL_CLOSED };

typedef struct {
  int fd, state, status, is_stream, events, has_ended, closes, wants_out;
  size_t sent;           /* of the request */
  uint64_t asked, first; /* when the request began to go out, and when the first event came */
  uint64_t due;          /* with a rate: when the next request may go out; 0 while an answer is awaited */
  size_t left;           /* of the body or of this chunk */
  char head[16384];
  size_t head_size;
  char line[65536]; /* a line that is not whole yet */
  size_t line_size;
} client;

static struct sockaddr_in address;
static char *request;
static size_t request_size;
static int poller;
static const char *end_text;
static int events_min;
static uint64_t measure_from, measure_until;
static double rate;
static uint64_t last_slot; /* of the rate */

static samples whole_time, first_time, transit_time;
static unsigned long good, bad, good_all, events_all, marks_all;
static char first_error[512];

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int is_measured(uint64_t time) {
  return time >= measure_from && time <= measure_until;
}

/* ---- samples */

static void add(samples *to, uint64_t value) {
  if (to->count == to->room) {
    to->room = to->room ? to->room * 2 : 65536;
    to->values = realloc(to->values, to->room * sizeof *to->values);
    if (!to->values)
      abort();
  }
  to->values[to->count++] = value;
}

static int compare(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void print_samples(const char *name, samples *of) {
  qsort(of->values, of->count, sizeof *of->values, compare);
  double at[] = {0.5, 0.99, 1};
  double us[3] = {0};
  for (int i = 0; of->count && i < 3; i++)
    us[i] = of->values[(size_t)(at[i] * (of->count - 1) + 0.5)] / 1000.0;
  printf("\"%s\":{\"count\":%zu,\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f},", name, of->count, us[0], us[1], us[2]);
}

/* ---- requests */

static void watch(client *c, int how, int wants_out) {
  struct epoll_event event = {.events = EPOLLIN | (wants_out ? EPOLLOUT : 0), .data.ptr = c};
  c->wants_out = wants_out;
  epoll_ctl(poller, how, c->fd, &event);
}

static void begin(client *c) {
  c->state = HEAD;
  c->sent = c->head_size = c->line_size = 0;
  c->status = c->events = c->closes = c->is_stream = 0;
  c->has_ended = !end_text;
  c->first = c->due = 0;
  c->asked = now();
}

static void open_client(client *c) {
  int one = 1;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  connect(c->fd, (void *)&address, sizeof address);
  watch(c, EPOLL_CTL_ADD, 1);
  begin(c);
}

static void reopen(client *c) {
  close(c->fd);
  open_client(c);
}

/* 0 when the connection is dead. */
static int send_request(client *c) {
  while (c->sent < request_size) {
    ssize_t sent = send(c->fd, request + c->sent, request_size - c->sent, MSG_NOSIGNAL);
    if (sent > 0)
      c->sent += sent;
    else if (errno == EAGAIN || errno == ENOTCONN || errno == EINPROGRESS) {
      if (!c->wants_out)
        watch(c, EPOLL_CTL_MOD, 1);
      return 1;
    } else
      return 0;
  }
  if (c->wants_out)
    watch(c, EPOLL_CTL_MOD, 0);
  return 1;
}

/* ---- answers */

static void count_bad(client *c, const char *why) {
  bad++;
  if (first_error[0])
    return;
  snprintf(first_error, sizeof first_error, "%s, status %d, %d events: %.250s", why, c->status, c->events, c->head);
  for (char *p = first_error; *p; p++) /* it will stand in JSON */
    if (*p < 32 || *p == '"' || *p == '\\' || *p > 126)
      *p = ' ';
}

static void on_line(client *c, const char *line, size_t size, uint64_t time) {
  if (end_text && memmem(line, size, end_text, strlen(end_text)))
    c->has_ended = 1;
  if (size < 5 || memcmp(line, "data:", 5))
    return;
  c->events++;
  events_all++;
  if (!c->first)
    c->first = time;
  const char *mark = memmem(line, size, "@@", 2);
  if (!mark || mark + 18 > line + size)
    return;
  marks_all++;
  if (!is_measured(time))
    return;
  uint64_t sent = 0;
  for (int i = 2; i < 18; i++)
    sent = sent * 10 + (mark[i] - '0');
  if (time > sent)
    add(&transit_time, time - sent);
}

static void keep(client *c, const char *data, size_t size) {
  if (c->line_size + size > sizeof c->line)
    size = sizeof c->line - c->line_size;
  memcpy(c->line + c->line_size, data, size);
  c->line_size += size;
}

static void on_body(client *c, const char *data, size_t size, uint64_t time) {
  if (!c->first && !c->is_stream)
    c->first = time;
  for (const char *end; (end = memchr(data, '\n', size)); size -= end + 1 - data, data = end + 1) {
    if (!c->line_size)
      on_line(c, data, end - data, time);
    else {
      keep(c, data, end - data);
      on_line(c, c->line, c->line_size, time);
      c->line_size = 0;
    }
  }
  keep(c, data, size);
}

static void ask_again(client *c) {
  int closes = c->closes;
  begin(c);
  if (closes || !send_request(c))
    reopen(c);
}

static void on_whole(client *c, uint64_t time) {
  if (c->line_size)
    on_line(c, c->line, c->line_size, time);
  if (c->status / 100 != 2 || !c->has_ended || c->events < events_min)
    count_bad(c, "not a good answer");
  else {
    good_all++;
    if (is_measured(time)) {
      good++;
      add(&whole_time, time - c->asked);
      add(&first_time, c->first - c->asked);
    }
  }
  if (rate > 0 && !c->closes) {
    last_slot += 1e9 / rate;
    if (last_slot < time) /* the target is behind: what it has missed is not made up for */
      last_slot = time;
    c->due = last_slot;
  } else
    ask_again(c);
}

static const char *header(const char *head, const char *name) {
  for (const char *p = head; (p = strchr(p, '\n'));)
    if (!strncasecmp(++p, name, strlen(name)))
      return p + strlen(name) + strspn(p + strlen(name), " ");
  return "";
}

static void read_head(client *c) {
  c->status = atoi(c->head + 9);
  c->is_stream = !strncasecmp(header(c->head, "content-type:"), "text/event-stream", 17);
  c->closes = !strncasecmp(header(c->head, "connection:"), "close", 5);
  c->left = 0;
  if (!strncasecmp(header(c->head, "transfer-encoding:"), "chunked", 7))
    c->state = CHUNK_SIZE;
  else if (*header(c->head, "content-length:")) {
    c->left = atol(header(c->head, "content-length:"));
    c->state = COUNTED;
  } else {
    c->state = UNTIL_CLOSED;
    c->closes = 1;
  }
}

/* How much of the data belonged to the head. */
static size_t on_head(client *c, const char *data, size_t size) {
  size_t before = c->head_size, room = sizeof c->head - 1 - before;
  size_t taken = size < room ? size : room;
  memcpy(c->head + before, data, taken);
  c->head_size += taken;
  c->head[c->head_size] = 0;
  char *end = strstr(c->head, "\r\n\r\n");
  if (!end)
    return taken;
  end[4] = 0;
  c->head_size = end + 4 - c->head;
  read_head(c);
  return c->head_size - before;
}

static void on_chunk_size(client *c, char digit) {
  if (digit == '\n')
    c->state = c->left ? CHUNK_DATA : TRAILER;
  else if (digit >= '0' && digit <= '9')
    c->left = c->left * 16 + digit - '0';
  else if ((digit | 32) >= 'a' && (digit | 32) <= 'f')
    c->left = c->left * 16 + (digit | 32) - 'a' + 10;
}

/* How much of the data was body. */
static size_t on_counted(client *c, const char *data, size_t size, uint64_t time) {
  size_t taken = size < c->left ? size : c->left;
  on_body(c, data, taken, time);
  c->left -= taken;
  return taken;
}

/* Returns after the answer is whole: what is left of the data, if any, is not for us. */
static void on_data(client *c, const char *data, size_t size, uint64_t time) {
  while (size) {
    size_t taken = 1;
    int is_whole = 0;
    switch (c->state) {
    case HEAD:
      taken = on_head(c, data, size);
      is_whole = c->state == COUNTED && !c->left;
      if (!taken) { /* the head is longer than we keep */
        count_bad(c, "head too long");
        reopen(c);
        return;
      }
      break;
    case COUNTED:
      taken = on_counted(c, data, size, time);
      is_whole = !c->left;
      break;
    case CHUNK_SIZE:
      on_chunk_size(c, *data);
      break;
    case CHUNK_DATA:
      taken = on_counted(c, data, size, time);
      if (!c->left)
        c->state = CHUNK_END;
      break;
    case CHUNK_END:
      if (*data == '\n')
        c->state = CHUNK_SIZE;
      break;
    case TRAILER:
      is_whole = *data == '\n';
      break;
    default:
      taken = size;
      on_body(c, data, size, time);
    }
    if (is_whole) {
      on_whole(c, time);
      return;
    }
    data += taken;
    size -= taken;
  }
}

static void on_closed(client *c, uint64_t time, const char *why) {
  if (c->state == UNTIL_CLOSED) {
    on_whole(c, time);
    return;
  }
  if (c->head_size || !c->sent || why) { /* a kept connection may be closed between two answers */
    count_bad(c, why ? why : "closed early");
    usleep(1000);
  }
  reopen(c);
}

static void handle(struct epoll_event *event) {
  static char buffer[262144];
  client *c = event->data.ptr;
  if ((event->events & EPOLLOUT) && !send_request(c)) {
    on_closed(c, now(), "could not send");
    return;
  }
  if (!(event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
    return;
  ssize_t got = recv(c->fd, buffer, sizeof buffer, 0);
  if (got > 0)
    on_data(c, buffer, got, now());
  else if (got == 0)
    on_closed(c, now(), 0);
  else if (errno != EAGAIN)
    on_closed(c, now(), strerror(errno));
}

/* ---- start */

static void read_request(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(1);
  }
  fseek(file, 0, SEEK_END);
  request_size = ftell(file);
  rewind(file);
  request = malloc(request_size);
  if (!request || fread(request, 1, request_size, file) != request_size)
    exit(1);
  fclose(file);
}

static void run(int connections, double seconds, double warmup, long stagger_us) {
  client *clients = calloc(connections, sizeof *clients);
  uint64_t started = now();
  measure_from = started + warmup * 1e9;
  measure_until = measure_from + seconds * 1e9;
  int opened = 0;
  for (uint64_t time; (time = now()) <= measure_until;) {
    while (opened < connections && (uint64_t)opened * stagger_us * 1000 <= time - started)
      open_client(&clients[opened++]);
    for (int i = 0; rate > 0 && i < opened; i++)
      if (clients[i].due && clients[i].due <= time)
        ask_again(&clients[i]);
    struct epoll_event events[256];
    int ready = epoll_wait(poller, events, 256, opened < connections || rate > 0 ? 1 : 20);
    for (int i = 0; i < ready; i++)
      handle(&events[i]);
  }
}

int main(int count, char **arguments) {
  const char *host = "127.0.0.1", *path = "";
  int port = 0, connections = 1;
  double seconds = 2, warmup = 0.4;
  long stagger_us = 0;
  for (int i = 1; i + 1 < count; i += 2) {
    const char *name = arguments[i], *value = arguments[i + 1];
    if (!strcmp(name, "--host"))
      host = value;
    else if (!strcmp(name, "--port"))
      port = atoi(value);
    else if (!strcmp(name, "--request"))
      path = value;
    else if (!strcmp(name, "--connections"))
      connections = atoi(value);
    else if (!strcmp(name, "--seconds"))
      seconds = atof(value);
    else if (!strcmp(name, "--warmup"))
      warmup = atof(value);
    else if (!strcmp(name, "--stagger"))
      stagger_us = atol(value);
    else if (!strcmp(name, "--end"))
      end_text = value;
    else if (!strcmp(name, "--events-min"))
      events_min = atoi(value);
    else if (!strcmp(name, "--rate"))
      rate = atof(value);
  }
  read_request(path);
  signal(SIGPIPE, SIG_IGN);
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, host, &address.sin_addr);
  poller = epoll_create1(0);
  run(connections, seconds, warmup, stagger_us);
  printf("{\"good\":%lu,\"bad\":%lu,\"good_all\":%lu,\"events_all\":%lu,\"marks_all\":%lu,\"per_second\":%.2f,", good, bad, good_all, events_all,
         marks_all, good / seconds);
  print_samples("whole_us", &whole_time);
  print_samples("first_us", &first_time);
  print_samples("transit_us", &transit_time);
  printf("\"error\":\"%s\"}\n", first_error);
  return 0;
}
