#include "attention.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "phases.h"

namespace ouzel {
namespace {

void check(bool is_right, const char* message) {
    if (!is_right) throw std::out_of_range(message);
}

void check_sequences(const Sequences& sequences, size_t num_rows) {
    for (size_t s = 0; s < sequences.count; s++) {
        check(sequences.begins[s] >= 0 && sequences.begins[s] <= sequences.begins[s + 1], "begins of sequences must not fall");
        check(sequences.past_lens[s] >= 0, "numbers of past tokens must be 0 or more");
        check(sequences.block_begins[s] >= 0 && sequences.block_begins[s] <= sequences.block_begins[s + 1], "begins of blocks must not fall");
        const size_t tokens = size_t(sequences.past_lens[s]) + size_t(sequences.begins[s + 1] - sequences.begins[s]);
        const size_t blocks = size_t(sequences.block_begins[s + 1] - sequences.block_begins[s]);
        check(tokens <= blocks * BLOCK_TOKENS, "a sequence has more tokens than its blocks");
    }
    check(!sequences.count || size_t(sequences.begins[sequences.count]) <= num_rows, "sequences have more rows than there are");
}

// A row is the first two-way token, or continues those of the row before it, or those that are past.
void check_two_way_tokens(const Sequences& sequences, const int32_t* begins) {
    for (size_t s = 0; s < sequences.count; s++)
        for (int32_t row = sequences.begins[s]; row < sequences.begins[s + 1]; row++) {
            const int32_t begin = begins[row], first = sequences.begins[s], token = sequences.past_lens[s] + (row - first);
            const bool continues = row == first ? begin >= 0 && begin < token : begin == begins[row - 1];
            check(begin == -1 || begin == token || continues, "begins of two-way tokens must follow each other");
        }
}

// Larger numbers become the largest one, and a NaN stays: an infinity would spoil queries that do not see it.
__m256 limit(__m256 numbers, float largest) {
    return _mm256_max_ps(_mm256_set1_ps(-largest), _mm256_min_ps(_mm256_set1_ps(largest), numbers));
}

constexpr float LARGEST_HALF = 65504, LARGEST_FLOAT = std::numeric_limits<float>::max();

__m128i round_to_halves(const float* from) { return _mm256_cvtps_ph(limit(_mm256_loadu_ps(from), LARGEST_HALF), _MM_FROUND_TO_NEAREST_INT); }

// The number of the block where the first channel of a token's key stands.
size_t place_of_key(size_t channels, size_t token) { return token / 16 * 16 * channels + token % 16 / 4 * 32 + token % 4 * 4; }

// Writes a token of a head to its block of keys and its block of values.
void write_halves(size_t channels, size_t token, const float* key, const float* value, uint8_t* keys, uint8_t* values) {
    keys += 2 * place_of_key(channels, token), values += 2 * token * channels;
    for (size_t i = 0; i < channels; i += 8) {
        const __m128i halves = round_to_halves(key + i);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(keys + 32 * i), halves);
        _mm_storeh_pd(reinterpret_cast<double*>(keys + 32 * i + 32), _mm_castsi128_pd(halves));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(values + 2 * i), round_to_halves(value + i));
    }
}

// The same in f32.
void write_floats(size_t channels, size_t token, const float* key, const float* value, uint8_t* keys, uint8_t* values) {
    float *to_key = reinterpret_cast<float*>(keys) + place_of_key(channels, token), *to_value = reinterpret_cast<float*>(values) + token * channels;
    for (size_t i = 0; i < channels; i += 8) {
        const __m256 of_key = limit(_mm256_loadu_ps(key + i), LARGEST_FLOAT);
        _mm_storeu_ps(to_key + 16 * i, _mm256_castps256_ps128(of_key)), _mm_storeu_ps(to_key + 16 * i + 16, _mm256_extractf128_ps(of_key, 1));
        _mm256_storeu_ps(to_value + i, limit(_mm256_loadu_ps(value + i), LARGEST_FLOAT));
    }
}

constexpr float LARGEST_BYTE = 255;
constexpr float LARGEST_IN_BYTES = 126 * LARGEST_HALF;  // no scale is rounded up to infinity

// 32 numbers in u8. The smallest number that is not above 0, and the largest one that is not below 0, become 0 and 255. The scale is rounded
// up. A line with a NaN has a NaN as its scale.
struct Line {
    alignas(32) uint8_t bytes[LINE];
    uint16_t scale;
    uint8_t zero;
};

float take_largest(__m256 numbers) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(numbers), _mm256_extractf128_ps(numbers, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
}

Line round_to_bytes(const float* from) {
    __m256 numbers[4], largest = _mm256_setzero_ps(), least = largest, unordered = largest;
    for (int i = 0; i < 4; i++) {
        numbers[i] = limit(_mm256_loadu_ps(from + 8 * i), LARGEST_IN_BYTES);
        largest = _mm256_max_ps(numbers[i], largest), least = _mm256_min_ps(numbers[i], least);
        unordered = _mm256_or_ps(unordered, _mm256_cmp_ps(numbers[i], numbers[i], _CMP_UNORD_Q));
    }
    Line line;
    const float most = take_largest(largest), most_below = take_largest(_mm256_sub_ps(_mm256_setzero_ps(), least));
    line.scale = uint16_t(_cvtss_sh((most + most_below) / LARGEST_BYTE, _MM_FROUND_TO_POS_INF));
    if (_mm256_movemask_ps(unordered)) line.scale = 0x7e00;
    const float scale = _cvtsh_ss(line.scale), inverse = scale > 0 ? 1 / scale : 0;
    line.zero = uint8_t(_mm_cvtss_si32(_mm_set_ss(most_below * inverse)));
    __m256i words[4];
    for (int i = 0; i < 4; i++)
        words[i] = _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_mul_ps(numbers[i], _mm256_set1_ps(inverse))), _mm256_set1_epi32(line.zero));
    // Packing keeps each half of a vector apart, so fours of numbers are put in order.
    const __m256i packed = _mm256_packus_epi16(_mm256_packs_epi32(words[0], words[1]), _mm256_packs_epi32(words[2], words[3]));
    _mm256_store_si256(reinterpret_cast<__m256i*>(line.bytes), _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
    return line;
}

// The block of a head for keys or for values in u8.
struct ByteBlock {
    uint8_t *numbers, *scales, *zeros;

    ByteBlock(uint8_t* block, size_t channels)
        : numbers(block), scales(block + channels * BLOCK_TOKENS), zeros(scales + channels / LINE * 2 * BLOCK_TOKENS) {}

    void write_scale(size_t token, size_t line, const Line& from) const {
        std::memcpy(scales + (line * BLOCK_TOKENS + token) * 2, &from.scale, 2);
        zeros[line * BLOCK_TOKENS + token] = from.zero;
    }
};

// The same as `write_halves` in u8.
void write_bytes(size_t channels, size_t token, const float* key, const float* value, uint8_t* keys, uint8_t* values) {
    const ByteBlock key_block(keys, channels), value_block(values, channels);
    for (size_t line = 0; line < channels / LINE; line++) {
        const size_t first = line * LINE;
        const Line of_key = round_to_bytes(key + first), of_value = round_to_bytes(value + first);
        uint8_t* to = key_block.numbers + place_of_key(channels, token) + first * 16;
        for (size_t i = 0; i < LINE; i += 4) std::memcpy(to + i / 8 * 128 + i % 8 * 4, of_key.bytes + i, 4);
        std::memcpy(value_block.numbers + token * channels + first, of_value.bytes, LINE);
        key_block.write_scale(token, line, of_key), value_block.write_scale(token, line, of_value);
    }
}

// One call of the operation: the heads' blocks in the cache, and the rows of the sequences.
class Call {
public:
    Call(const Attention& attention, const Sequences& sequences, const Cache& cache, const AttentionRows& rows)
        : attention(attention), sequences(sequences), cache(cache), rows(rows) {
        if (rows.two_way_begins) find_two_way_ends();
    }

    size_t num_rows(size_t sequence) const { return size_t(sequences.begins[sequence + 1] - sequences.begins[sequence]); }
    size_t group() const { return attention.num_heads / attention.num_kv_heads; }  // queries that share a head of keys

    // The byte of the cache's arrays where a head's block with some token of a sequence begins.
    size_t place(size_t sequence, size_t token, size_t head) const {
        const int32_t id = sequences.block_ids[size_t(sequences.block_begins[sequence]) + token / BLOCK_TOKENS];
        check(id >= 0 && size_t(id) < cache.num_blocks, "a block is not in the cache");
        return (size_t(id) * attention.num_kv_heads + head) * block_bytes(attention.cache_type, attention.channels);
    }

    void write_token(size_t sequence, size_t row, size_t head) const {
        const size_t token = size_t(sequences.past_lens[sequence]) + row, lane = token % BLOCK_TOKENS, at = place(sequence, token, head);
        const size_t from = ((size_t(sequences.begins[sequence]) + row) * attention.num_kv_heads + head) * attention.channels;
        const auto write = attention.cache_type == CacheType::F16 ? write_halves : attention.cache_type == CacheType::U8 ? write_bytes : write_floats;
        write(attention.channels, lane, rows.keys + from, rows.values + from, cache.keys + at, cache.values + at);
    }

    // The number in its context of the first two-way token of a row, or `otherwise` if the row is none.
    size_t two_way_begin(size_t sequence, size_t row, size_t otherwise) const {
        if (!rows.two_way_begins) return otherwise;
        const int32_t begin = rows.two_way_begins[size_t(sequences.begins[sequence]) + row];
        return begin < 0 ? otherwise : size_t(begin);
    }
    // The end of the tokens that a row sees.
    size_t end_token(size_t sequence, size_t row) const {
        const size_t end = two_way_ends_.empty() ? row + 1 : two_way_ends_[size_t(sequences.begins[sequence]) + row];
        return size_t(sequences.past_lens[sequence]) + end;
    }

    const Attention& attention;
    const Sequences& sequences;
    const Cache& cache;
    const AttentionRows& rows;

private:
    void find_two_way_ends() {
        two_way_ends_.resize(rows.num_rows);
        for (size_t s = 0; s < sequences.count; s++) {
            const size_t first = size_t(sequences.begins[s]);
            for (size_t row = num_rows(s); row-- > 0;) {
                const int32_t* begin = rows.two_way_begins + first + row;
                const bool ends = row + 1 == num_rows(s) || begin[0] < 0 || begin[1] != begin[0];
                two_way_ends_[first + row] = ends ? row + 1 : two_way_ends_[first + row + 1];
            }
        }
    }

    std::vector<size_t> two_way_ends_;  // of each row, from the first row of its sequence; empty if there are no two-way tokens
};

// Some queries of the rows of a sequence that share a head of keys: query q is head q % group of row q / group.
struct Tile {
    size_t sequence, head, first, count;
};

// A query sees the tokens of its context from the first one to the end. Neither falls from a query to the next.
size_t end_token(const Call& call, const Tile& tile, size_t query) {
    return call.end_token(tile.sequence, (tile.first + query) / call.group());
}
size_t first_token(const Call& call, const Tile& tile, size_t query) {
    const size_t row = (tile.first + query) / call.group(), window = call.attention.window;
    const size_t own_end = size_t(call.sequences.past_lens[tile.sequence]) + row + 1, first = window && own_end > window ? own_end - window : 0;
    return std::min(first, call.two_way_begin(tile.sequence, row, first));
}
size_t first_part(const Call& call, const Tile& tile) { return first_token(call, tile, 0) / PART_TOKENS; }
size_t end_part(const Call& call, const Tile& tile) { return (end_token(call, tile, tile.count - 1) + PART_TOKENS - 1) / PART_TOKENS; }

// Tiles with long contexts first, so that threads end at about the same time.
std::vector<Tile> make_tiles(const Level& level, const Call& call) {
    std::vector<Tile> tiles;
    for (size_t s = 0; s < call.sequences.count; s++) {
        const size_t num_queries = call.num_rows(s) * call.group();
        if (!num_queries) continue;
        const size_t chunk = level.query_chunk(num_queries), chunks = (num_queries + chunk - 1) / chunk;
        for (size_t head = 0; head < call.attention.num_kv_heads; head++)
            for (size_t i = chunks; i-- > 0;) tiles.push_back({s, head, i * chunk, std::min(chunk, num_queries - i * chunk)});
    }
    return tiles;
}

// Memory for the result of a part, or of several.
class Results {
public:
    void reserve(size_t count, size_t channels) {
        stride_ = MOST_QUERIES * (channels + 2);
        numbers_.reserve(count * stride_);
    }
    Attended operator[](size_t number) {
        float* first = numbers_.data() + number * stride_;
        return {first + 2 * MOST_QUERIES, first, first + MOST_QUERIES};
    }

private:
    Buffer<float> numbers_;
    size_t stride_ = 0;
};

struct Workspace {  // of a thread
    Buffer<float> queries, weights;
    Results results;
};

Workspace& workspace(size_t channels) {
    static thread_local Workspace memory;
    memory.queries.reserve(MOST_QUERIES * QUERY_STRIDE), memory.weights.reserve(MOST_QUERIES * WEIGHT_STRIDE);
    memory.results.reserve(2, channels);
    return memory;
}

const float* query(const Call& call, const Tile& tile, size_t number) {
    const size_t row = size_t(call.sequences.begins[tile.sequence]) + (tile.first + number) / call.group();
    const size_t head = tile.head * call.group() + (tile.first + number) % call.group();
    return call.rows.queries + (row * call.attention.num_heads + head) * call.attention.channels;
}

// Copies the queries of a tile, with the scale of their products. The last query stands again in the places after it.
Queries take_queries(const Level& level, const Call& call, const Tile& tile, Buffer<float>& to) {
    const size_t channels = call.attention.channels, count = level.query_chunk(tile.count);
    for (size_t q = 0; q < count; q++) {
        const float* from = query(call, tile, std::min(q, tile.count - 1));
        for (size_t i = 0; i < channels; i++) to.data()[q * QUERY_STRIDE + i] = from[i] * call.attention.scale;
    }
    return {count, channels, call.attention.softcap, call.attention.cache_type, to.data()};
}

Part find_part(const Call& call, const Tile& tile, size_t number, size_t count) {
    const size_t begin = number * PART_TOKENS, end = std::min(begin + PART_TOKENS, end_token(call, tile, tile.count - 1));
    Part part;
    part.blocks = (end - begin + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    const size_t first_block = std::max(first_token(call, tile, 0), begin) / BLOCK_TOKENS;
    for (size_t i = 0; i < part.blocks; i++) {
        // Nobody sees the blocks before the first one, and they need not exist.
        const size_t at = call.place(tile.sequence, std::max(first_block * BLOCK_TOKENS, begin + i * BLOCK_TOKENS), tile.head);
        part.keys[i] = call.cache.keys + at, part.values[i] = call.cache.values + at;
    }
    for (size_t q = 0; q < count; q++) {
        const size_t same = std::min(q, tile.count - 1);
        part.begins[q] = std::min(std::max(first_token(call, tile, same), begin) - begin, PART_TOKENS);
        const size_t last = end_token(call, tile, same);
        part.ends[q] = last > begin ? std::min(last, end) - begin : 0;
    }
    return part;
}

void write_result(const Level& level, const Call& call, const Tile& tile, const Attended& result, float* to) {
    for (size_t q = 0; q < tile.count; q++) {
        const size_t head = tile.head * call.group() + (tile.first + q) % call.group();
        level.divide_by_sum(result, q, call.attention.channels, call.attention.sinks ? call.attention.sinks + head : nullptr,
                            to + (query(call, tile, q) - call.rows.queries));
    }
}

// Rows of a sequence that are written to one block of a head.
struct Span {
    size_t sequence, first, count;
};

// The rows of all sequences by their blocks: threads do not write to the same lines.
std::vector<Span> make_spans(const Call& call) {
    std::vector<Span> spans;
    for (size_t s = 0; s < call.sequences.count; s++) {
        const size_t past = size_t(call.sequences.past_lens[s]), rows = call.num_rows(s);
        for (size_t row = 0, count; row < rows; row += count) {
            count = std::min(rows - row, BLOCK_TOKENS - (past + row) % BLOCK_TOKENS);
            spans.push_back({s, row, count});
        }
    }
    return spans;
}

void write_span(const Call& call, const Span& span) {
    for (size_t head = 0; head < call.attention.num_kv_heads; head++)
        for (size_t row = span.first; row < span.first + span.count; row++) call.write_token(span.sequence, row, head);
}

// Computes one part of a tile.
void attend_part(const Level& level, const Call& call, const Tile& tile, size_t part, const Attended& to) {
    Workspace& memory = workspace(call.attention.channels);
    const Queries queries = take_queries(level, call, tile, memory.queries);
    level.attend(queries, find_part(call, tile, part, queries.count), memory.weights.data(), to);
}

// Computes a tile, one part after the other.
void attend_tile(const Level& level, const Call& call, const Tile& tile, float* to) {
    Workspace& memory = workspace(call.attention.channels);
    Results& results = memory.results;
    const Queries queries = take_queries(level, call, tile, memory.queries);
    const size_t first = first_part(call, tile), end = end_part(call, tile);
    for (size_t part = first; part < end; part++) {
        level.attend(queries, find_part(call, tile, part, queries.count), memory.weights.data(), results[part > first]);
        if (part > first) level.join_parts(results[0], results[1], tile.count, call.attention.channels);
    }
    write_result(level, call, tile, results[0], to);
}

struct TilePart {
    size_t tile, part;
};
struct TileParts {
    std::vector<TilePart> all;
    std::vector<size_t> begins{0};  // of each tile, and the end of the last one

    bool has_several() const { return all.size() >= begins.size(); }  // of some tile
};

TileParts find_parts(const Call& call, const std::vector<Tile>& tiles) {
    TileParts parts;
    for (size_t i = 0; i < tiles.size(); i++) {
        for (size_t part = first_part(call, tiles[i]); part < end_part(call, tiles[i]); part++) parts.all.push_back({i, part});
        parts.begins.push_back(parts.all.size());
    }
    return parts;
}

void run_tiles(const Level& level, const Call& call, const std::vector<Tile>& tiles, float* to) {
    static thread_local Results results_of_thread;
    Results& results = results_of_thread;
    const std::vector<Span> spans = make_spans(call);
    // Few tiles are computed part by part, so that all threads have work, and their parts are joined afterwards.
    TileParts parts;
    if (tiles.size() < 4 * num_threads()) parts = find_parts(call, tiles);
    std::vector<Phase> phases;
    if (call.attention.writes_cache) phases.push_back({spans.size(), [&](size_t i) { write_span(call, spans[i]); }});
    if (!parts.has_several()) {
        phases.push_back({tiles.size(), [&](size_t i) { attend_tile(level, call, tiles[i], to); }});
    } else {
        results.reserve(parts.all.size(), call.attention.channels);
        phases.push_back({parts.all.size(), [&](size_t i) { attend_part(level, call, tiles[parts.all[i].tile], parts.all[i].part, results[i]); }});
        phases.push_back({tiles.size(), [&](size_t i) {
                              const size_t first = parts.begins[i];
                              for (size_t part = first + 1; part < parts.begins[i + 1]; part++)
                                  level.join_parts(results[first], results[part], tiles[i].count, call.attention.channels);
                              write_result(level, call, tiles[i], results[first], to);
                          }});
    }
    run_phases(phases.data(), phases.size(), level.finish);
}

}  // namespace

void attend(const Level& level, const Attention& attention, const Sequences& sequences, const Cache& cache, const AttentionRows& rows,
            float* to) {
    check_sequences(sequences, rows.num_rows);
    if (rows.two_way_begins) check_two_way_tokens(sequences, rows.two_way_begins);
    const size_t width = attention.num_heads * attention.channels;
    const size_t first = sequences.count ? size_t(sequences.begins[0]) : rows.num_rows;
    const size_t end = sequences.count ? size_t(sequences.begins[sequences.count]) : first;
    std::fill(to, to + first * width, 0.f);
    std::fill(to + end * width, to + rows.num_rows * width, 0.f);
    const Call call(attention, sequences, cache, rows);
    const std::vector<Tile> tiles = make_tiles(level, call);
    if (tiles.empty()) return;
    run_tiles(level, call, tiles, to);
}

}  // namespace ouzel
