// A cluster: blocks that run at once, each in a copy of the library and on a host thread of its own, and their barrier.
#pragma once

namespace emulator {

struct Cluster {  // of all its blocks; zeros but for ``live``, from launch.py
  unsigned live;        // blocks that have not ended: those that have count as arrived
  unsigned arrived;     // blocks at the barrier number ``generation``
  unsigned generation;
  unsigned asleep;      // blocks none of whose threads can run before the barrier opens
  int failed;           // 1 a block has been aborted, 2 none can go on
  char order[2];        // for the race detector, in turn
  pthread_mutex_t lock;
  pthread_cond_t changed;
};
static_assert(sizeof(Cluster) <= 256, "launch.py has room for this");

static Cluster* cluster;
static unsigned n_at_cluster;        // threads of this block that have arrived
static unsigned cluster_generation;  // of the barrier before which this block is
static bool is_counted;              // in ``arrived``

EMULATOR_RAW inline void begin_cluster() {
  cluster = static_cast<Cluster*>(job->cluster);
  n_at_cluster = cluster_generation = 0, is_counted = false;
}

// With the lock held. Who sleeps no longer does.
EMULATOR_RAW inline void open_cluster_if_all_are_here() {
  if (!cluster->live || cluster->arrived < cluster->live) return;
  cluster->arrived = cluster->asleep = 0;
  ++cluster->generation;
  pthread_cond_broadcast(&cluster->changed);
}

EMULATOR_RAW inline void block_arrives() {
  pthread_mutex_lock(&cluster->lock);
  is_counted = true;
  ++cluster->arrived;
  open_cluster_if_all_are_here();
  pthread_mutex_unlock(&cluster->lock);
}

// The threads of this block that have waited can go on, if the barrier is open. With the lock held.
EMULATOR_RAW inline void see_cluster() {
  if (cluster->generation == cluster_generation) return;
  cluster_generation = cluster->generation;
  n_at_cluster = 0, is_counted = false;
  for (unsigned i = 0; i < n_threads; ++i)
    if (fibers[i].state == AT_CLUSTER) fibers[i].state = RUNNABLE;
}

// A thread has ended.
EMULATOR_RAW inline void block_may_arrive() {
  if (cluster && n_live && !is_counted && n_at_cluster == n_live) block_arrives();
}

EMULATOR_RAW inline void cluster_arrive(const char* file, int line) {
  Fiber& me = *current;
  if (!cluster || me.at_cluster) {
    report(cluster ? "this thread is at the barrier of its cluster already, at %s:%d" : "no cluster at %s:%d", file, line);
    die();
  }
  me.at_cluster = true, me.generation = cluster_generation;
  release(&cluster->order[me.generation & 1]);
  if (++n_at_cluster == n_live) block_arrives();
}

EMULATOR_RAW inline void cluster_wait(const char* file, int line) {
  Fiber& me = *current;
  if (!me.at_cluster) {
    report("this thread has not arrived at the barrier of its cluster, at %s:%d", file, line);
    die();
  }
  pthread_mutex_lock(&cluster->lock);
  see_cluster();
  pthread_mutex_unlock(&cluster->lock);
  me.file = file, me.line = line;
  if (me.generation == cluster_generation) {
    me.state = AT_CLUSTER;
    leave();
  }
  if (aborted) die();
  me.at_cluster = false;
  acquire(&cluster->order[me.generation & 1]);
}

// By the scheduler, when no thread of the block can run: until the barrier opens. False if it never will.
EMULATOR_RAW inline bool sleep_at_cluster() {
  bool any = false;
  for (unsigned i = 0; i < n_threads; ++i) any |= fibers[i].state == AT_CLUSTER;
  if (!any) return false;
  pthread_mutex_lock(&cluster->lock);
  if (cluster->generation == cluster_generation && !cluster->failed && ++cluster->asleep == cluster->live) {
    cluster->failed = 2;
    pthread_cond_broadcast(&cluster->changed);
  }
  while (cluster->generation == cluster_generation && !cluster->failed) pthread_cond_wait(&cluster->changed, &cluster->lock);
  int failed = cluster->failed;
  see_cluster();
  pthread_mutex_unlock(&cluster->lock);
  if (failed == 1) aborted = true;  // the other block says why
  return failed != 2;
}

EMULATOR_RAW inline void end_cluster() {
  pthread_mutex_lock(&cluster->lock);
  if (is_counted && cluster->generation == cluster_generation) --cluster->arrived;
  --cluster->live;
  if (aborted && !cluster->failed) cluster->failed = 1;
  open_cluster_if_all_are_here();
  if (cluster->live && cluster->asleep == cluster->live && !cluster->failed) cluster->failed = 2;
  pthread_cond_broadcast(&cluster->changed);
  pthread_mutex_unlock(&cluster->lock);
  cluster = nullptr;
}

}  // namespace emulator

inline void __cluster_barrier_arrive(EMULATOR_SITE) { emulator::cluster_arrive(file_, line_); }
inline void __cluster_barrier_wait(EMULATOR_SITE) { emulator::cluster_wait(file_, line_); }
