/* A model that answers from memory: one thread, epoll, every byte of every answer is ready before the first request.
 *
 * usage: mock --port P --scripts DIR [--pace-ms MS] [--flood-mb MB]
 *
 * DIR holds, for each dialect D of chat, messages and responses, the files
 *   D.text.sse  D.tools.sse  D.paced.sse    streamed answers, events parted by an empty line
 *   D.text.json D.tools.json                whole answers
 *
 * What a request gets is the last '-' part of its "model":
 *   plain  the whole text                              text   its stream, one send() for each event, as fast as it goes
 *   tools  a call, whole or streamed like text         burst  the stream of text in one write
 *   paced  an event every MS; "@@" and 16 digits in it become the time of sending (ns, CLOCK_MONOTONIC)
 *   flood  text without end (MB megabytes), to see who keeps the bytes of a reader that stopped
 *
 * GET /stats gives counters, any other GET a list of models.
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
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { CHAT, MESSAGES, RESPONSES, DIALECTS };
enum { TEXT, TOOLS, PACED, STREAMS, FLOOD = STREAMS };
enum { SENT = 1, BLOCKED = 0, DEAD = -1 }; /* what became of a write */

static const char *const dialect_names[] = {"chat", "messages", "responses"};
static const char *const stream_names[] = {"text", "tools", "paced"};
static const char stream_head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                                  "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char stream_end[] = "0\r\n\r\n";
static const char models[] = "{\"object\":\"list\",\"data\":[{\"id\":\"oa-plain\",\"object\":\"model\","
                             "\"created\":1700000000,\"owned_by\":\"mock\"}]}";

typedef struct {
  char *data;
  size_t size;
} bytes;

typedef struct {
  bytes *events; /* each framed as one HTTP chunk */
  int count;
  int usage; /* the event that only who asked for usage gets, or -1 */
  bytes all;
} script;

typedef struct connection {
  int fd, dialect, stream, next_event, is_active, has_text, wants_usage, wants_out;
  char *in; /* requests, as they come */
  size_t in_size, in_room, in_needed;
  char *held; /* what the socket did not take yet */
  size_t held_size, held_room;
  long flood_sent;
  int slot; /* in the wheel of paced streams, or -1 */
  struct connection *next, *previous;
} connection;

static int pace_ms = 20;
static long flood_bytes = 64l << 20;
static script scripts[DIALECTS][STREAMS];
static bytes whole[DIALECTS][2]; /* [is a call] */
static struct {
  unsigned long connections, open, requests, streams, done, aborted, bytes_sent;
} stats;

static int poller, timer;
static connection *wheel[1000]; /* one slot for each millisecond of the pace */
static unsigned tick;
static connection *graveyard; /* closed in this round of events; freed after it */

static void *grow(void *memory, size_t size) {
  memory = realloc(memory, size);
  if (!memory)
    abort();
  return memory;
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* ---- the scripts */

static bytes read_file(const char *folder, const char *dialect, const char *name, const char *suffix) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.%s.%s", folder, dialect, name, suffix);
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(1);
  }
  fseek(file, 0, SEEK_END);
  bytes content = {0, ftell(file)};
  rewind(file);
  content.data = grow(0, content.size + 1);
  if (fread(content.data, 1, content.size, file) != content.size)
    exit(1);
  content.data[content.size] = 0;
  fclose(file);
  return content;
}

static void append(bytes *to, const char *data, size_t size) {
  to->data = grow(to->data, to->size + size + 1);
  memcpy(to->data + to->size, data, size);
  to->size += size;
  to->data[to->size] = 0;
}

static bytes as_chunk(const char *data, size_t size) {
  char head[32];
  bytes chunk = {0, 0};
  append(&chunk, head, snprintf(head, sizeof head, "%zx\r\n", size));
  append(&chunk, data, size);
  append(&chunk, "\r\n", 2);
  return chunk;
}

static script read_script(const char *folder, int dialect, int stream) {
  bytes file = read_file(folder, dialect_names[dialect], stream_names[stream], "sse");
  script made = {.usage = -1};
  for (char *event = file.data, *end; (end = strstr(event, "\n\n")); event = end + 2) {
    bytes chunk = as_chunk(event, end + 2 - event);
    if (dialect == CHAT && strstr(chunk.data, "\"choices\":[]"))
      made.usage = made.count;
    made.events = grow(made.events, (made.count + 1) * sizeof chunk);
    made.events[made.count++] = chunk;
    append(&made.all, chunk.data, chunk.size);
  }
  free(file.data);
  return made;
}

static bytes as_answer(const char *body, size_t size) {
  char head[128];
  bytes answer = {0, 0};
  append(&answer, head,
         snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                  size));
  append(&answer, body, size);
  return answer;
}

static void read_scripts(const char *folder) {
  for (int dialect = 0; dialect < DIALECTS; dialect++) {
    for (int stream = 0; stream < STREAMS; stream++)
      scripts[dialect][stream] = read_script(folder, dialect, stream);
    for (int is_call = 0; is_call < 2; is_call++) {
      bytes body = read_file(folder, dialect_names[dialect], stream_names[is_call], "json");
      whole[dialect][is_call] = as_answer(body.data, body.size);
      free(body.data);
    }
  }
}

/* ---- one connection */

static void watch_out(connection *c, int wants_out) {
  if (c->wants_out == wants_out)
    return;
  c->wants_out = wants_out;
  struct epoll_event event = {.events = EPOLLIN | (wants_out ? EPOLLOUT : 0), .data.ptr = c};
  epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
}

static void enter_wheel(connection *c) {
  static unsigned spread; /* so that streams opened together do not tick together */
  c->slot = (spread++ * 7 + tick) % pace_ms;
  c->previous = 0;
  c->next = wheel[c->slot];
  if (c->next)
    c->next->previous = c;
  wheel[c->slot] = c;
}

static void leave_wheel(connection *c) {
  if (c->slot < 0)
    return;
  if (c->previous)
    c->previous->next = c->next;
  else
    wheel[c->slot] = c->next;
  if (c->next)
    c->next->previous = c->previous;
  c->slot = -1;
  c->next = c->previous = 0;
}

static void drop(connection *c) {
  if (c->fd < 0)
    return;
  stats.aborted += c->is_active;
  stats.open--;
  leave_wheel(c);
  close(c->fd);
  c->fd = -1;
  free(c->in);
  free(c->held);
  c->next = graveyard;
  graveyard = c;
}

static void hold(connection *c, const char *data, size_t size) {
  if (c->held_size + size > c->held_room)
    c->held = grow(c->held, c->held_room = (c->held_size + size) * 2);
  memcpy(c->held + c->held_size, data, size);
  c->held_size += size;
  watch_out(c, 1);
}

static int put(connection *c, const char *data, size_t size) {
  while (size && !c->held_size) {
    ssize_t sent = send(c->fd, data, size, MSG_NOSIGNAL);
    if (sent > 0) {
      data += sent;
      size -= sent;
      stats.bytes_sent += sent;
    } else if (errno == EAGAIN)
      break;
    else if (errno != EINTR)
      return DEAD;
  }
  if (!size)
    return SENT;
  hold(c, data, size);
  return BLOCKED;
}

static int put_bytes(connection *c, bytes what) {
  return put(c, what.data, what.size);
}

static int put_held(connection *c) {
  size_t done = 0;
  while (done < c->held_size) {
    ssize_t sent = send(c->fd, c->held + done, c->held_size - done, MSG_NOSIGNAL);
    if (sent > 0) {
      done += sent;
      stats.bytes_sent += sent;
    } else if (errno == EAGAIN) {
      memmove(c->held, c->held + done, c->held_size - done);
      c->held_size -= done;
      return BLOCKED;
    } else if (errno != EINTR)
      return DEAD;
  }
  c->held_size = 0;
  watch_out(c, 0);
  return SENT;
}

/* ---- streams */

static int finish(connection *c) {
  c->is_active = 0;
  stats.done++;
  return put(c, stream_end, sizeof stream_end - 1);
}

/* The next event this client should get, or 0 at the end of its script. */
static bytes *next_event(connection *c) {
  script *s = &scripts[c->dialect][c->stream];
  if (c->next_event == s->usage && !c->wants_usage)
    c->next_event++;
  return c->next_event < s->count ? &s->events[c->next_event++] : 0;
}

/* The beginning of the text, then its middle event again and again, then its end. */
static int pump_flood(connection *c) {
  script *s = &scripts[c->dialect][TEXT];
  int middle = s->count / 2;
  while (c->flood_sent < flood_bytes) {
    bytes event = s->events[c->next_event < middle ? c->next_event++ : middle];
    c->flood_sent += event.size;
    int result = put_bytes(c, event);
    if (result != SENT)
      return result;
  }
  c->stream = TEXT;
  return SENT;
}

static int pump(connection *c) {
  if (c->stream == FLOOD) {
    int result = pump_flood(c);
    if (result != SENT)
      return result;
  }
  for (bytes *event; (event = next_event(c));) {
    int result = put_bytes(c, *event);
    if (result != SENT)
      return result;
  }
  return finish(c);
}

/* 1 if there was a place for the time. */
static int write_time(char *data, size_t size) {
  char *mark = memmem(data, size, "@@", 2);
  if (!mark)
    return 0;
  uint64_t time = now_ns();
  for (int i = 15; i >= 0; i--, time /= 10)
    mark[2 + i] = '0' + time % 10;
  return 1;
}

static int step_paced(connection *c) {
  char copy[4096];
  bytes *event = next_event(c);
  int is_text = 0;
  if (event && event->size <= sizeof copy) {
    memcpy(copy, event->data, event->size);
    is_text = write_time(copy, event->size);
    c->has_text |= is_text;
    if (put(c, copy, event->size) == DEAD)
      return DEAD;
  }
  if (is_text || !c->has_text)
    return SENT;
  leave_wheel(c); /* after the text, the end comes at once */
  return pump(c);
}

static void on_tick(void) {
  uint64_t ticks;
  if (read(timer, &ticks, sizeof ticks) != sizeof ticks)
    return;
  for (ticks = ticks > 1000 ? 1000 : ticks; ticks; ticks--) {
    connection *c = wheel[++tick % pace_ms], *next;
    for (; c; c = next) {
      next = c->next;
      if (step_paced(c) == DEAD)
        drop(c);
    }
  }
}

/* ---- requests */

static int answer_get(connection *c, const char *head, size_t size) {
  char text[512];
  if (memmem(head, size, "/stats", 6))
    snprintf(text, sizeof text,
             "{\"connections\":%lu,\"open\":%lu,\"requests\":%lu,\"streams\":%lu,\"done\":%lu,\"aborted\":%lu,"
             "\"bytes_sent\":%lu}",
             stats.connections, stats.open, stats.requests, stats.streams, stats.done, stats.aborted, stats.bytes_sent);
  else
    snprintf(text, sizeof text, "%s", models);
  bytes answer = as_answer(text, strlen(text));
  int result = put_bytes(c, answer);
  free(answer.data);
  return result;
}

/* The beginning of the value of a member; the whole body is one JSON object, ended by a 0 byte. */
static const char *member(const char *body, size_t size, const char *name) {
  const char *found = memmem(body, size, name, strlen(name));
  return found ? found + strlen(name) + strspn(found + strlen(name), " :") : 0;
}

/* The part after the last '-' of the model's name, "" if there is none. */
static void scenario_of(const char *body, size_t size, char *out, size_t room) {
  const char *value = member(body, size, "\"model\"");
  char name[128] = "";
  if (value && *value == '"')
    snprintf(name, sizeof name, "%.*s", (int)strcspn(value + 1, "\""), value + 1);
  const char *dash = strrchr(name, '-');
  snprintf(out, room, "%s", dash ? dash + 1 : name);
}

static int answer(connection *c, const char *head, size_t head_size, const char *body, size_t size) {
  char scenario[128];
  stats.requests++;
  if (head[0] == 'G')
    return answer_get(c, head, head_size);
  size_t line = strcspn(head, "\r\n");
  c->dialect = memmem(head, line, "/messages", 9) ? MESSAGES : memmem(head, line, "/responses", 10) ? RESPONSES : CHAT;
  scenario_of(body, size, scenario, sizeof scenario);
  int is_call = !strcmp(scenario, "tools");
  const char *streamed = member(body, size, "\"stream\"");
  if (!streamed || *streamed != 't')
    return put_bytes(c, whole[c->dialect][is_call]);
  c->stream = is_call ? TOOLS : !strcmp(scenario, "paced") ? PACED : !strcmp(scenario, "flood") ? FLOOD : TEXT;
  c->wants_usage = memmem(body, size, "\"include_usage\"", 15) != 0;
  c->next_event = 0;
  c->flood_sent = 0;
  c->has_text = 0;
  c->is_active = 1;
  stats.streams++;
  int result = put(c, stream_head, sizeof stream_head - 1);
  if (result != SENT)
    return result;
  if (!strcmp(scenario, "burst")) {
    result = put_bytes(c, scripts[c->dialect][TEXT].all);
    return result == DEAD ? DEAD : finish(c);
  }
  if (c->stream != PACED)
    return pump(c);
  enter_wheel(c);
  return put_bytes(c, *next_event(c));
}

static const char *header(const char *head, size_t size, const char *name) {
  size_t length = strlen(name);
  for (const char *p = head; p && p + length < head + size; p = memchr(p, '\n', head + size - p), p = p ? p + 1 : p)
    if (!strncasecmp(p, name, length))
      return p + length;
  return 0;
}

/* Join the chunks of a request body in place; its size. */
static size_t join_chunks(char *body) {
  char *from = body, *to = body, *data;
  for (size_t size; (size = strtoul(from, &data, 16)) && (data = strstr(data, "\r\n")); from = data + 2 + size + 2) {
    memmove(to, data + 2, size);
    to += size;
  }
  return to - body;
}

/* Answer the first request in the buffer and remove it; BLOCKED when it is not complete, or a stream is still under
 * way. */
static int take_request(connection *c) {
  if (c->is_active || c->in_size < c->in_needed)
    return BLOCKED;
  c->in[c->in_size] = 0;
  char *end = memmem(c->in, c->in_size, "\r\n\r\n", 4);
  if (!end)
    return BLOCKED;
  char *body = end + 4;
  size_t head_size = body - c->in, body_size, total;
  if (header(c->in, head_size, "transfer-encoding:")) {
    char *last = memmem(body - 2, c->in_size - head_size + 2, "\r\n0\r\n\r\n", 7);
    if (!last)
      return BLOCKED;
    total = last + 7 - c->in;
    body_size = join_chunks(body);
  } else {
    const char *length = header(c->in, head_size, "content-length:");
    body_size = length ? strtoul(length, 0, 10) : 0;
    c->in_needed = total = head_size + body_size;
    if (c->in_size < total)
      return BLOCKED;
  }
  if (answer(c, c->in, head_size, body, body_size) == DEAD)
    return DEAD;
  memmove(c->in, c->in + total, c->in_size - total);
  c->in_size -= total;
  c->in_needed = 0;
  return SENT;
}

static int on_readable(connection *c) {
  for (;;) {
    if (c->in_room - c->in_size < 65536)
      c->in = grow(c->in, c->in_room = c->in_room * 2 + 131072);
    size_t room = c->in_room - c->in_size - 1;
    ssize_t got = recv(c->fd, c->in + c->in_size, room, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
      return DEAD;
    if (got < 0)
      return BLOCKED;
    c->in_size += got;
    int result;
    while ((result = take_request(c)) == SENT)
      if (!c->in_size)
        break;
    if (result == DEAD)
      return DEAD;
    if ((size_t)got < room)
      return BLOCKED;
  }
}

static int on_writable(connection *c) {
  int result = put_held(c);
  return result == SENT && c->is_active && c->stream != PACED ? pump(c) : result;
}

static void on_connect(int listener) {
  int fd, one = 1;
  while ((fd = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    connection *c = grow(0, sizeof *c);
    *c = (connection){.fd = fd, .slot = -1};
    stats.connections++;
    stats.open++;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
  }
}

/* ---- start */

static int listen_on(int port) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 2048)) {
    perror("mock");
    exit(1);
  }
  return listener;
}

static void watch(int *fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = fd};
  epoll_ctl(poller, EPOLL_CTL_ADD, *fd, &event);
}

static void handle(struct epoll_event *event, int *listener) {
  connection *c = event->data.ptr;
  if (event->data.ptr == listener)
    on_connect(*listener);
  else if (event->data.ptr == &timer)
    on_tick();
  else if (c->fd >= 0 && (event->events & EPOLLOUT) && on_writable(c) == DEAD)
    drop(c);
  else if (c->fd >= 0 && (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && on_readable(c) == DEAD)
    drop(c);
}

int main(int count, char **arguments) {
  int port = 0;
  const char *folder = ".";
  for (int i = 1; i + 1 < count; i += 2) {
    const char *name = arguments[i], *value = arguments[i + 1];
    if (!strcmp(name, "--port"))
      port = atoi(value);
    else if (!strcmp(name, "--scripts"))
      folder = value;
    else if (!strcmp(name, "--pace-ms"))
      pace_ms = atoi(value) < 1 || atoi(value) > 1000 ? pace_ms : atoi(value);
    else if (!strcmp(name, "--flood-mb"))
      flood_bytes = atol(value) << 20;
  }
  signal(SIGPIPE, SIG_IGN);
  read_scripts(folder);
  int listener = listen_on(port);
  poller = epoll_create1(0);
  timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  struct itimerspec millisecond = {{0, 1000000}, {0, 1000000}};
  timerfd_settime(timer, 0, &millisecond, 0);
  watch(&listener);
  watch(&timer);
  for (;;) {
    struct epoll_event events[256];
    int ready = epoll_wait(poller, events, 256, -1);
    for (int i = 0; i < ready; i++)
      handle(&events[i], &listener);
    for (connection *c; (c = graveyard); free(c))
      graveyard = c->next;
  }
}
