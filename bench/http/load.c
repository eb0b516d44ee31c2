/* A model and its readers in one thread: the upstream that a relay asks, and the clients that read the relay.
 *
 * Both ends in one program, so that a delta can be sent exactly when the one before was read (one in flight on each
 * stream, nothing merges), and so that a delta's way is timed by one clock. Python at either end would be the
 * bottleneck: this takes about as much CPU a delta as nginx.
 *
 * load MODE UPSTREAM_PORT TARGET_PORT PATH HEADERS BODY STREAMS COUNT WARM RATE PIDS
 *   MODE      pass  COUNT deltas on each stream, each sent when the one before was read; WARM before the measuring
 *             pace  COUNT deltas on each stream, RATE a second
 *             ask   COUNT answers of one delta, STREAMS at a time; WARM before the measuring; RATE 1: each on a
 *                   connection of its own
 *             idle  STREAMS that have one delta, silent for COUNT seconds, then one more each and the end
 *   HEADERS   further request header lines, each ending with CRLF
 *   BODY      of the request; its @ becomes the stream's number (between two #, which the upstream looks for)
 *   PIDS      processes of the target, with commas: their CPU time and memory are told
 * Prints one JSON object. Exit status 0: every stream ended, every delta came once and in order.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define MOST_FDS 65536
#define RAMP 64                        /* streams asked for and not answered yet, while the rest come up */
#define GIVE_UP 300000000000LL         /* ns in which a run must end */
#define LISTENER 0
#define CLIENT (1ULL << 32)
#define UPSTREAM (2ULL << 32)

enum { PASS, PACE, ASK, IDLE };
enum { ASKED, BODY, OVER };

typedef struct {
  int fd, up, state, keep, sent, got, digits, value, head_length;
  int64_t asked_at;
  int64_t *sent_at;
  char head[4096], tail[7];
} Stream;

typedef struct {
  int length, stream;
  char *request;
} Conn;

static Stream *streams;
static Conn conns[MOST_FDS];
static int mode, upstream_port, target_port, count, warm, rate, total, poll_fd;
static const char *path, *headers, *body;
static int pids[64], pid_count;
static int up, launched, over, wrong, lost, failed, finishing;
static long deltas, answers;
static int64_t cpu_at, cpu_end, own_at, own_end, wall_at, wall_end;
static float *lags;
static long lag_count, lag_most;

static int64_t clock_of(clockid_t clock) {
  struct timespec t;
  if (clock_gettime(clock, &t)) return 0;
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static int64_t now(void) { return clock_of(CLOCK_MONOTONIC); }

static int64_t cpu(void) { /* of the target, all threads, in ns */
  int64_t sum = 0;
  for (int i = 0; i < pid_count; i++) sum += clock_of((~(clockid_t)pids[i] << 3) | 2);
  return sum;
}

static long memory(void) { /* of the target, kB that are its own */
  long sum = 0;
  for (int i = 0; i < pid_count; i++) {
    char name[64], line[256];
    snprintf(name, sizeof name, "/proc/%d/status", pids[i]);
    FILE *file = fopen(name, "r");
    if (!file) continue;
    long kb;
    while (fgets(line, sizeof line, file))
      if (sscanf(line, "RssAnon: %ld", &kb) == 1) sum += kb;
    fclose(file);
  }
  return sum;
}

static void begin_measuring(void) { wall_at = now(); cpu_at = cpu(); own_at = clock_of(CLOCK_PROCESS_CPUTIME_ID); }
static void end_measuring(void) { wall_end = now(); cpu_end = cpu(); own_end = clock_of(CLOCK_PROCESS_CPUTIME_ID); }

static void die(const char *why) {
  fprintf(stderr, "load: %s (%s); %d up, %d over, %ld deltas\n", why, strerror(errno), up, over, deltas);
  exit(2);
}

static void watch(int fd, uint64_t tag) {
  struct epoll_event e = {.events = EPOLLIN, .data.u64 = tag};
  if (fd >= MOST_FDS || epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &e)) die("epoll");
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void put(int fd, const char *data, int length) {
  if (send(fd, data, length, MSG_NOSIGNAL) != length) { if (errno == EPIPE || errno == ECONNRESET) failed++; else die("a write was cut"); }
}

/* The model. A chunk has the shape and the size of OpenAI's: 260 bytes. */

#define CHUNK "data: {\"id\":\"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012\",\"object\":\"chat.completion.chunk\",\"created\":1764446400," \
  "\"model\":\"gpt-4o-mini-2024-07-18\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_0123456789\","

static int framed(char *out, const char *chunk, int length) {
  int n = sprintf(out, "%x\r\n", length);
  memcpy(out + n, chunk, length);
  memcpy(out + n + length, "\r\n", 2);
  return n + length + 2;
}

static int delta(char *out, int number) {
  char chunk[512];
  int n = sprintf(chunk, CHUNK "\"choices\":[{\"index\":0,\"delta\":{\"content\":\" ~%05d\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n", number);
  return framed(out, chunk, n);
}

static int opening(char *out) {
  static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  static const char first[] = CHUNK "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
  memcpy(out, head, sizeof head - 1);
  return sizeof head - 1 + framed(out + sizeof head - 1, first, sizeof first - 1);
}

static int ending(char *out) {
  static const char reason[] = CHUNK "\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}]}\n\n";
  static const char usage[] = CHUNK "\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":9,\"total_tokens\":18}}\n\n";
  int n = framed(out, reason, sizeof reason - 1);
  n += framed(out + n, usage, sizeof usage - 1);
  n += framed(out + n, "data: [DONE]\n\n", 14);
  memcpy(out + n, "0\r\n\r\n", 5);
  return n + 5;
}

static void say(Stream *s) {
  char out[1024];
  int n = delta(out, s->sent);
  if (s->sent_at) s->sent_at[s->sent] = now();
  s->sent++;
  put(s->up, out, n);
}

static void finish(Stream *s) {
  char out[2048];
  conns[s->up].stream = -1;
  put(s->up, out, ending(out));
}

static void asked(int fd, int number) {
  if (number < 0 || number >= total) die("a request for no stream");
  Stream *s = &streams[number];
  char out[4096];
  int n = opening(out);
  s->up = fd;
  conns[fd].stream = number;
  if (s->sent) { failed++; return; } /* asked twice: a relay that retries */
  if (s->sent_at) s->sent_at[0] = now();
  n += delta(out + n, s->sent++);
  if (mode == ASK) {
    conns[fd].stream = -1;
    n += ending(out + n);
  }
  put(fd, out, n);
}

static void upstream_read(int fd) {
  Conn *c = &conns[fd];
  if (!c->request) c->request = malloc(65536);
  int n = recv(fd, c->request + c->length, 65535 - c->length, 0);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) {
    if (c->stream >= 0 && streams[c->stream].state != OVER) failed++;
    close(fd);
    c->length = 0;
    c->stream = -1;
    return;
  }
  c->length += n;
  c->request[c->length] = 0;
  char *end = strstr(c->request, "\r\n\r\n");
  if (!end) return;
  char *declared = strcasestr(c->request, "content-length:");
  int wanted = declared && declared < end ? atoi(declared + 15) : 0;
  if (c->length < end + 4 - c->request + wanted) return;
  c->length = 0;
  for (char *at = end; (at = strchr(at, '#')); at++) {
    char *after;
    long number = strtol(at + 1, &after, 10);
    if (after > at + 1 && *after == '#') { asked(fd, number); return; }
  }
  die("a request without a number");
}

/* The readers. */

static void launch(Stream *s) {
  char out[8192], filled[4096];
  int number = s - streams, n = 0;
  for (const char *p = body; *p; p++)
    if (*p == '@') n += sprintf(filled + n, "#%d#", number); else filled[n++] = *p;
  filled[n] = 0;
  s->state = ASKED;
  s->sent = s->got = s->digits = s->head_length = 0;
  s->up = -1;
  memset(s->tail, 0, sizeof s->tail);
  s->asked_at = now();
  if (s->fd < 0) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(target_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&to, sizeof to)) die("connect");
    watch(s->fd, CLIENT | number);
  }
  n = snprintf(out, sizeof out, "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
               path, target_port, headers, n, filled);
  put(s->fd, out, n);
}

static void came(Stream *s, int64_t at) { /* one delta was read, whole */
  if (s->value != s->got) wrong++;
  s->got++;
  if (s->got == 1) {
    if (mode == ASK && lag_count < lag_most && answers >= warm) lags[lag_count++] = at - s->asked_at;
    up++;
    if (mode != ASK && launched < total) launch(&streams[launched++]);
  }
  if (mode == PACE && s->got > 1 && lag_count < lag_most) lags[lag_count++] = at - s->sent_at[s->got - 1];
  if (mode != PASS) return;
  deltas++;
  if (deltas == (long)warm * total) begin_measuring();
  if (deltas == (long)(warm + count) * total) { end_measuring(); finishing = 1; }
  if (finishing) finish(s); else say(s);
}

static void done(Stream *s) { /* the response has ended */
  if (s->got != s->sent) lost++;
  s->state = OVER;
  if (!s->keep || (mode == ASK && rate)) { close(s->fd); s->fd = -1; }
  if (mode != ASK) { over++; return; }
  answers++;
  if (answers == warm) begin_measuring();
  if (answers == warm + count) end_measuring();
  if (launched < warm + count) { launched++; launch(s); } else over++;
}

static void scan(Stream *s, const char *data, int n, int64_t at) {
  const char *p = data, *end = data + n;
  while (p < end) {
    if (!s->digits) {
      p = memchr(p, '~', end - p);
      if (!p) break;
      p++;
      s->digits = 1;
      s->value = 0;
    } else {
      if (*p < '0' || *p > '9') die("a delta was garbled");
      s->value = s->value * 10 + *p++ - '0';
      if (++s->digits == 6) { s->digits = 0; came(s, at); }
    }
  }
  char joined[14];
  int k = n < 7 ? n : 7;
  memcpy(joined, s->tail, 7);
  memcpy(joined + 7, end - k, k);
  memcpy(s->tail, joined + k, 7);
  if (!memcmp(s->tail, "\r\n0\r\n\r\n", 7)) done(s);
}

static void client_read(Stream *s) {
  static char data[262144];
  int n = recv(s->fd, data, sizeof data, 0);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) {
    close(s->fd);
    s->fd = -1;
    if (s->state != OVER) { failed++; s->keep = 0; s->state = OVER; over++; }
    return;
  }
  int64_t at = now();
  if (s->state == OVER) return;
  if (s->state == BODY) { scan(s, data, n, at); return; }
  int room = sizeof s->head - 1 - s->head_length, k = n < room ? n : room;
  memcpy(s->head + s->head_length, data, k);
  int before = s->head_length;
  s->head_length += k;
  s->head[s->head_length] = 0;
  char *end = strstr(s->head, "\r\n\r\n");
  if (!end) { if (k == room) die("a long head"); return; }
  if (strncmp(s->head + 8, " 200", 4)) { fprintf(stderr, "%s\n", s->head); die("refused"); }
  *end = 0;
  s->keep = !strcasestr(s->head, "connection: close");
  s->state = BODY;
  int used = end + 4 - s->head - before;
  memcpy(s->tail, "\r\n", 2);
  if (n > used) scan(s, data + used, n - used, at);
}

static int by_size(const void *a, const void *b) { float d = *(float *)a - *(float *)b; return (d > 0) - (d < 0); }

int main(int argc, char **argv) {
  if (argc != 12) { fprintf(stderr, "see the head of load.c\n"); return 2; }
  const char *names[] = {"pass", "pace", "ask", "idle"};
  for (mode = 0; mode < 4 && strcmp(argv[1], names[mode]); mode++);
  upstream_port = atoi(argv[2]); target_port = atoi(argv[3]);
  path = argv[4]; headers = argv[5]; body = argv[6];
  total = atoi(argv[7]); count = atoi(argv[8]); warm = atoi(argv[9]); rate = atoi(argv[10]);
  for (char *p = strtok(argv[11], ","); p && pid_count < 64; p = strtok(NULL, ",")) pids[pid_count++] = atoi(p);
  streams = calloc(total, sizeof *streams);
  lag_most = mode == PACE ? (long)total * count : count;
  lags = malloc(sizeof *lags * (lag_most + 1));
  for (int i = 0; i < total; i++) {
    streams[i].fd = -1;
    if (mode == PACE) streams[i].sent_at = calloc(count + 1, sizeof(int64_t));
  }
  for (int i = 0; i < MOST_FDS; i++) conns[i].stream = -1;
  poll_fd = epoll_create1(0);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(upstream_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 4096)) die("listen");
  watch(listener, LISTENER);
  long before = memory(), after = 0;
  int64_t began = now(), next = 0, period = mode == PACE ? 1000000000LL / rate / total : 0, silent_until = 0;
  long paced = 0;
  int at_once = mode == ASK ? total : total < RAMP ? total : RAMP;
  if (mode == ASK && !warm) begin_measuring();
  while (launched < at_once) { launched++; launch(&streams[launched - 1]); }
  while (over < total) {
    if (now() - began > GIVE_UP) die("it takes too long");
    struct timespec wait = {1, 0};
    if (mode == PACE && up == total && paced < (long)count * total) {
      int64_t t = now();
      if (!next) { next = t + 500000000LL; began = t; }
      if (!cpu_at && t >= next) begin_measuring();
      while (t >= next && paced < (long)count * total) {
        say(&streams[paced++ % total]);
        next += period;
      }
      int64_t left = paced < (long)count * total ? next - now() : 1000000000LL;
      wait.tv_sec = 0;
      wait.tv_nsec = left < 0 ? 0 : left > 999999999LL ? 999999999LL : left;
    }
    if (mode == PACE && paced == (long)count * total && lag_count == lag_most && !finishing) {
      end_measuring();
      after = memory();
      finishing = 1;
      for (int i = 0; i < total; i++) finish(&streams[i]);
    }
    if (mode == IDLE && up == total && !finishing) {
      int64_t t = now();
      if (!silent_until) { silent_until = t + count * 1000000000LL; begin_measuring(); }
      if (t >= silent_until) {
        end_measuring();
        after = memory();
        finishing = 1;
        for (int i = 0; i < total; i++) { say(&streams[i]); finish(&streams[i]); }
      }
    }
    struct epoll_event events[512];
    int n = epoll_pwait2(poll_fd, events, 512, &wait, NULL);
    for (int i = 0; i < n; i++) {
      uint64_t tag = events[i].data.u64;
      if (tag == LISTENER) {
        int fd;
        while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) watch(fd, UPSTREAM | fd);
      } else if (tag >= UPSTREAM) upstream_read((int)(uint32_t)tag);
      else client_read(&streams[(uint32_t)tag]);
    }
  }
  if (!after) after = memory();
  qsort(lags, lag_count, sizeof *lags, by_size);
  printf("{\"cpu_ns\": %ld, \"own_cpu_ns\": %ld, \"wall_ns\": %ld, \"kb_before\": %ld, \"kb_after\": %ld, \"wrong\": %d, \"lost\": %d, \"failed\": %d",
         (long)(cpu_end - cpu_at), (long)(own_end - own_at), (long)(wall_end - wall_at), before, after, wrong, lost, failed);
  if (lag_count)
    printf(", \"p50_ns\": %.0f, \"p99_ns\": %.0f, \"most_ns\": %.0f", lags[lag_count / 2], lags[lag_count * 99 / 100], lags[lag_count - 1]);
  puts("}");
  return wrong || lost || failed;
}
