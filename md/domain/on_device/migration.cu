// Migration without the host; see migration.py. Numbers of rows are counted here: where there is too little room, a word says so.

#include "md/domain/on_device/records.cuh"

// Sort keys of the owned particles, of which those that stay have keys below `own`; and of those that leave, in `bins` bins rank by
// rank: these were in border cells, which are the first rows.
extern "C" __global__ void leave_keys(int n, const real* pos, int borders, const int* table, Grid grid, int own, int bins, int* keys,
                                      int* leaving, int* words) {
    int i = work_item();
    if (i >= n) return;
    int key = i < words[LIVE] ? key_of(table, grid, load(pos, n, i)) : absent_key(own + bins, i);
    bool leaves = key >= own && key < own + bins;
    keys[i] = key;
    if (i < borders) leaving[i] = leaves ? key - own : absent_key(bins, i);
    if (i >= borders && leaves) words[NO_ROOM] = 1;
}

// Stores the particles that leave as records in the memory of the peers. A work item is a place there: those at peer p end at
// ends[p]. Keys of particles for peer p are first_key[p] .. last_key[p] - 1, of `bins` in all. Peer p has its numbers from
// numbers_of[p] on, ids from ids_of[p] on, and the word with their count is number `word` of words_of[p].
extern "C" __global__ void send_records(int n, int peers, const int* ends, const int* first_key, const int* last_key, int bins,
                                        const int* start, const int* order, const real* pos, const velocity* vel, const int* id,
                                        const real* radius, int word, const unsigned long long* numbers_of,
                                        const unsigned long long* ids_of, const unsigned long long* words_of, int* words) {
    int k = work_item();
    if (k >= n) return;
    int p = peer_of(ends, k), begin = begin_of(ends, p);
    int from = start[first_key[p]], count = start[last_key[p]] - from, room = ends[p] - begin;
    if (k == begin) {
        ((int*)words_of[p])[word] = min(count, room);
        if (count > room) words[NO_ROOM] = 1;
    }
    if (k == 0) {
        int leaving = start[bins];
        for (int other = 0; other < peers; ++other) leaving -= start[last_key[other]] - start[first_key[other]];
        if (leaving != 0) words[NO_ROOM] = 1;  // some go to ranks that are no peers
    }
    k -= begin;
    if (k < count) write_record(n, order[from + k], pos, vel, id, radius, k, (real*)numbers_of[p], (int*)ids_of[p]);
}

// Sort keys of those that stay, of which `keys` has those of `leave_keys`, and of records, from row `before` on. The records of
// peer p end at ends[p]; it is rank ranks[p].
extern "C" __global__ void arrive_keys(int n, int before, const int* ends, const int* ranks, const real* pos,
                                       const real* numbers, int has_radius, const int* table, Grid grid, int own, int* keys, int* words) {
    int i = work_item();
    if (i >= n) return;
    int key = own;
    if (i < before) {
        key = keys[i];
    } else {
        int k = i - before, p = peer_of(ends, k);
        if (k - begin_of(ends, p) < words[COUNTS + ranks[p]]) {
            Vec r, v;
            read_numbers(numbers, EACH + has_radius, k, r, v);
            key = key_of(table, grid, r);
            if (key >= own) words[NO_ROOM] = 1;
        }
    }
    keys[i] = key < own ? key : absent_key(own, i);
}

// Row i of the new arrays gets row order[i], from `before` on those of records; and no particle if there are no more. `count` is
// the number of particles.
extern "C" __global__ void take_rows(int n, int before, const int* order, const int* count, const real* pos, const velocity* vel,
                                     const int* id, const real* radius, const real* numbers, const int* ids, real* new_pos,
                                     velocity* new_vel, int* new_id, real* new_radius, int* words) {
    int i = work_item();
    if (i >= n) return;
    if (i == 0) {
        words[REACHED] = max(words[REACHED], words[LIVE]);
        words[LIVE] = min(*count, n);
        if (*count > n) words[NO_ROOM] = 1;
    }
    if (i >= *count) {
        store_row(new_pos, new_vel, n, i, zero(), zero());
        new_id[i] = -1;
        if (new_radius) new_radius[i] = 0;
        return;
    }
    int j = order[i];
    if (j < before) {
        copy_row(n, j, pos, vel, id, radius, i, new_pos, new_vel, new_id, new_radius);
    } else {
        read_record(n, i, j - before, numbers, ids, new_pos, new_vel, new_id, new_radius);
    }
}

// Lists the border rows of each peer, and where each is in its list: place[p * borders + row]. A work item is a place in the
// lists, of which that of peer p ends at ends[p]. It holds runs of keys, which end at run_ends[p]: first_key .. last_key - 1.
// Row -1 is none. Peer p gets the radius of row k as that of its row k + shift[p], and the number of rows.
extern "C" __global__ void list_border(int n, const int* ends, const int* run_ends, const int* first_key, const int* last_key,
                                       const int* start, int borders, const real* pos, const real* radius,
                                       const int* shift, int word, const unsigned long long* radius_of, const unsigned long long* words_of, int* rows,
                                       int* place, int* words) {
    int k = work_item();
    if (k >= n) return;
    int p = peer_of(ends, k), begin = begin_of(ends, p), before = 0, row = -1;
    bool is_first = k == begin;
    for (int run = begin_of(run_ends, p); run < run_ends[p] && (row < 0 || is_first); ++run) {
        int from = start[first_key[run]], length = start[last_key[run]] - from, along = k - begin - before;
        if (row < 0 && along < length) row = from + along;
        before += length;
    }
    if (is_first) {
        ((int*)words_of[p])[word] = min(before, ends[p] - begin);
        if (before > ends[p] - begin) words[NO_ROOM] = 1;
    }
    if (row >= borders) {
        words[NO_ROOM] = 1;
        row = -1;
    }
    rows[k] = row;
    if (row < 0) return;
    place[(size_t)p * borders + row] = k;
    if (radius) ((real*)radius_of[p])[k + shift[p]] = radius[row];
}

// Sort keys of all rows by the number of their cell, or its entry in a table. Ghosts of peer p, rank ranks[p], end at row
// owned + ends[p]; rows without a particle have keys behind the others.
extern "C" __global__ void keys_of_rows(int n, int owned, int size, const int* words, const int* ranks, const int* ends,
                                        const real* pos, const int* table, Grid grid, int cells, int* keys) {
    int i = work_item();
    if (i >= n) return;
    bool is_there = i < words[LIVE];
    if (i >= owned) {
        int k = i - owned, p = peer_of(ends, k);
        is_there = k - begin_of(ends, p) < words[COUNTS + size + ranks[p]];
    }
    int key = absent_key(cells, i);
    if (is_there) {
        key = cell_number(grid, home_cell(grid, load(pos, n, i)));
        if (table) key = table[key];
    }
    keys[i] = key;
}
