// Results are compared with a plain attention in double precision over the same rounded keys and values, and bit for bit with those of
// each row alone, on the level AVX2 and one thread. The cache is compared with one that a plain loop writes. Its places without a token
// hold NaNs, and its arrays have exactly the lengths that attention.h names, as all arrays have.
#include "check_attention.h"

#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "attention.h"
#include "tbb/task_arena.h"

namespace ouzel {
namespace {

using Integers = std::vector<int32_t>;

constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();
constexpr uint8_t UNWRITTEN = 0x7e;  // two of them are a NaN in f16
constexpr int32_t LEAST = std::numeric_limits<int32_t>::min(), MOST = std::numeric_limits<int32_t>::max();

struct AttentionShape {
    size_t num_kv_heads, group, channels, window;
    bool has_sinks;
    CacheType cache_type = CacheType::F16;
    float softcap = 0;

    size_t num_heads() const { return num_kv_heads * group; }
    size_t width() const { return num_heads() * channels; }
    size_t kv_width() const { return num_kv_heads * channels; }
    // The first token that the token before `end` sees.
    size_t first_token(size_t end) const { return window && end > window ? end - window : 0; }
    std::string describe() const {
        return "attention of " + std::to_string(num_kv_heads) + " x " + std::to_string(group) + " heads of " + std::to_string(channels) +
               " channels" + (window ? ", window " + std::to_string(window) : "") + (has_sinks ? ", sinks" : "") +
               (cache_type == CacheType::U8 ? ", u8 cache" : cache_type == CacheType::F32 ? ", f32 cache" : "") +
               (softcap > 0 ? ", softcap" : "");
    }
};

// The tokens of a sequence: the first ones it shares with the sequence before it. The tokens from `two_way` to `end_two_way` see each other.
struct Length {
    size_t past, rows, shared = 0, two_way = 0, end_two_way = 0;
};

// Queries [rows][num_heads][channels], keys and values [past + rows][num_kv_heads][channels].
struct TestSequence {
    size_t past, rows, two_way, end_two_way;
    Floats queries, keys, values;
    Integers blocks;

    size_t tokens() const { return past + rows; }
    bool is_two_way(size_t row) const { return past + row >= two_way && past + row < end_two_way; }
    size_t end_token(size_t row) const { return is_two_way(row) ? end_two_way : past + row + 1; }
    int32_t two_way_begin(size_t row) const { return is_two_way(row) ? int32_t(two_way) : -1; }
};

struct Blocks {
    std::vector<uint8_t> keys, values;

    bool operator==(const Blocks& other) const { return keys == other.keys && values == other.values; }
};

// Some rows of a sequence.
struct Piece {
    size_t sequence, first, count;
};
using Pieces = std::vector<Piece>;

// The smallest number of f16 that is not below a positive number.
uint16_t round_up_to_half(float value) { return uint16_t(_cvtss_sh(value, _MM_FROUND_TO_POS_INF)); }
uint16_t round_to_half(float value) { return uint16_t(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT)); }

// 32 numbers of a token as the cache holds them: bytes of each number, the scale and the zero point of a line in u8, and what they mean.
struct RoundedLine {
    uint8_t bytes[LINE][4];
    uint16_t scale;
    uint8_t zero;
    double numbers[LINE];
};

RoundedLine round_line(CacheType type, const float* from) {
    RoundedLine line{};
    float largest = 0, least = 0;
    for (size_t i = 0; i < LINE; i++) largest = std::max(from[i], largest), least = std::min(from[i], least);
    line.scale = round_up_to_half((largest - least) / 255);
    const float scale = _cvtsh_ss(line.scale), inverse = scale > 0 ? 1 / scale : 0;
    line.zero = uint8_t(std::nearbyint(-least * inverse));
    for (size_t i = 0; i < LINE; i++) {
        if (type == CacheType::F32) {
            std::memcpy(line.bytes[i], from + i, 4);
            line.numbers[i] = double(from[i]);
        } else if (type == CacheType::F16) {
            const uint16_t half = round_to_half(from[i]);
            std::memcpy(line.bytes[i], &half, 2);
            line.numbers[i] = double(_cvtsh_ss(half));
        } else {
            const float byte = std::nearbyint(from[i] * inverse) + line.zero;
            line.bytes[i][0] = uint8_t(std::min(byte, 255.f));
            line.numbers[i] = double(scale) * (line.bytes[i][0] - line.zero);
        }
    }
    return line;
}

// What the cache holds of numbers [tokens][heads][channels].
Doubles round_numbers(CacheType type, const Floats& numbers) {
    Doubles found;
    for (size_t i = 0; i < numbers.size(); i += LINE) {
        const RoundedLine line = round_line(type, numbers.data() + i);
        found.insert(found.end(), line.numbers, line.numbers + LINE);
    }
    return found;
}

// Where the block has a channel of a token: keys [2 halves][channels / 8][4][2][4 tokens][4 channels].
size_t place_of_key(size_t token, size_t channel, size_t channels) {
    const size_t line = ((token / 16 * (channels / 8) + channel / 8) * 4 + token % 16 / 4) * 2 + channel % 8 / 4;
    return (line * 4 + token % 4) * 4 + channel % 4;
}

void append(Floats& to, const Floats& from, size_t first, size_t count, size_t width) {
    const auto begin = from.begin() + std::ptrdiff_t(first * width);
    to.insert(to.end(), begin, begin + std::ptrdiff_t(count * width));
}

// Sequences with random numbers, the cache before and after their rows, and the exact results of all rows.
struct TestAttention {
    AttentionShape shape;
    Floats sinks;
    std::vector<TestSequence> sequences;
    size_t num_blocks = 0;
    Blocks before, after;
    Doubles exact, magnitudes;  // [rows][num_heads][channels]
    Floats alone;               // the same of each row alone

    TestAttention(const AttentionShape& shape_, const std::vector<Length>& lengths, Random& random)
        : shape(shape_), sinks(random.numbers(shape.num_heads())) {
        sinks[0] = 20;  // more than all products
        for (const Length& length : lengths) add_sequence(length, random);
        give_blocks(lengths, random);
        const std::vector<uint8_t> unwritten(num_blocks * shape.num_kv_heads * head_bytes(), UNWRITTEN);
        before = {unwritten, unwritten}, after = before;
        for (const TestSequence& sequence : sequences) {
            write_tokens(sequence, sequence.past, before), write_tokens(sequence, sequence.tokens(), after);
            attend_plain(sequence);
        }
        Blocks cache = before;
        tbb::task_arena(1).execute([&] { alone = compute(AVX2, one_by_one(), cache); });
    }

    Attention attention(bool writes_cache = true) const {
        const float scale = 1 / std::sqrt(float(shape.channels));
        const float* all = shape.has_sinks ? sinks.data() : nullptr;
        return {shape.num_heads(), shape.num_kv_heads, shape.channels, scale, shape.softcap, shape.window, all, shape.cache_type, writes_cache};
    }
    bool has_two_way_tokens() const {
        return std::any_of(sequences.begin(), sequences.end(), [](const TestSequence& each) { return each.end_two_way > 0; });
    }
    size_t first_token(const TestSequence& sequence, size_t row) const {
        const size_t first = shape.first_token(sequence.past + row + 1);
        return sequence.is_two_way(row) ? std::min(first, sequence.two_way) : first;
    }
    size_t first_row(size_t sequence) const {
        size_t row = 0;
        for (size_t s = 0; s < sequence; s++) row += sequences[s].rows;
        return row;
    }

    // All rows in one call.
    Pieces whole() const {
        Pieces pieces;
        for (size_t s = 0; s < sequences.size(); s++) pieces.push_back({s, 0, sequences[s].rows});
        return pieces;
    }
    // Each row in a call of its own.
    std::vector<Pieces> one_by_one() const {
        std::vector<Pieces> calls;
        for (size_t s = 0; s < sequences.size(); s++)
            for (size_t row = 0; row < sequences[s].rows; row++) calls.push_back({{s, row, 1}});
        return calls;
    }
    // Each call has some of the next rows of each sequence, at most `most`, and the sequences in random order.
    std::vector<Pieces> divide(size_t most, Random& random) const {
        std::vector<Pieces> calls;
        std::vector<size_t> done(sequences.size());
        for (;;) {
            Pieces pieces;
            for (size_t s = 0; s < sequences.size(); s++) {
                const size_t count = std::min(sequences[s].rows - done[s], size_t(1 + random.below(unsigned(most))));
                if (count) pieces.insert(pieces.begin() + random.below(unsigned(pieces.size() + 1)), {s, done[s], count});
                done[s] += count;
            }
            if (pieces.empty()) return calls;
            calls.push_back(pieces);
        }
    }

    // The results of all rows, which the calls compute one after the other.
    Floats compute(const Level& level, const std::vector<Pieces>& calls, Blocks& cache) const;

private:
    void add_sequence(const Length& length, Random& random) {
        TestSequence sequence{length.past, length.rows, length.two_way, length.end_two_way, random.numbers(length.rows * shape.width()), {}, {}, {}};
        for (Floats TestSequence::*numbers : {&TestSequence::keys, &TestSequence::values}) {
            sequence.*numbers = random.numbers(sequence.tokens() * shape.kv_width());
            if (!length.shared) continue;
            const Floats& others = sequences.back().*numbers;
            std::copy_n(others.begin(), length.shared * shape.kv_width(), (sequence.*numbers).begin());
        }
        sequences.push_back(sequence);
    }
    size_t first_block(const TestSequence& sequence) const { return first_token(sequence, 0) / BLOCK_TOKENS; }

    // Blocks have random ids. The ids of blocks that no row sees, and of one block after the last token, are outside the cache.
    void give_blocks(const std::vector<Length>& lengths, Random& random) {
        for (size_t s = 0; s < sequences.size(); s++) {
            const size_t end = (sequences[s].tokens() + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
            sequences[s].blocks.resize(end + 1);
            for (size_t i = 0; i < end; i++) num_blocks += has_block(sequences[s], i) && i >= lengths[s].shared / BLOCK_TOKENS;
        }
        Integers ids(num_blocks++);
        std::iota(ids.begin(), ids.end(), 0);
        for (size_t i = 1; i < ids.size(); i++) std::swap(ids[i], ids[random.below(unsigned(i + 1))]);
        for (int32_t& id : ids) id += id > 0;  // block 1 belongs to nobody, and the last one to somebody
        for (size_t s = 0; s < sequences.size(); s++) {
            Integers& blocks = sequences[s].blocks;
            for (size_t i = 0; i < blocks.size(); i++) {
                const int32_t outside[] = {-1, int32_t(num_blocks), LEAST, MOST};
                if (i < lengths[s].shared / BLOCK_TOKENS)
                    blocks[i] = sequences[s - 1].blocks[i];
                else if (!has_block(sequences[s], i))
                    blocks[i] = outside[(s + i) % 4];
                else
                    blocks[i] = ids.back(), ids.pop_back();
            }
        }
    }
    bool has_block(const TestSequence& sequence, size_t block) const {
        return sequence.rows && block >= first_block(sequence) && block * BLOCK_TOKENS < sequence.tokens();
    }

    void write_tokens(const TestSequence& sequence, size_t end, Blocks& to) const {
        const size_t channels = shape.channels;
        for (size_t token = 0; token < end; token++) {
            if (!has_block(sequence, token / BLOCK_TOKENS)) continue;
            const size_t id = size_t(sequence.blocks[token / BLOCK_TOKENS]), lane = token % BLOCK_TOKENS;
            for (size_t i = 0; i < shape.kv_width(); i += LINE) {
                const size_t block = (id * shape.num_kv_heads + i / channels) * head_bytes(), from = token * shape.kv_width() + i;
                write_line(sequence.keys.data() + from, true, lane, i % channels, to.keys.data() + block);
                write_line(sequence.values.data() + from, false, lane, i % channels, to.values.data() + block);
            }
        }
    }
    size_t head_bytes() const { return block_bytes(shape.cache_type, shape.channels); }
    void write_line(const float* from, bool is_key, size_t token, size_t first_channel, uint8_t* block) const {
        const RoundedLine line = round_line(shape.cache_type, from);
        const size_t bytes = shape.cache_type == CacheType::F16 ? 2 : shape.cache_type == CacheType::U8 ? 1 : 4;
        for (size_t i = 0; i < LINE; i++) {
            const size_t channel = first_channel + i;
            const size_t place = is_key ? place_of_key(token, channel, shape.channels) : token * shape.channels + channel;
            std::memcpy(block + place * bytes, line.bytes[i], bytes);
        }
        if (bytes > 1) return;
        const size_t number = first_channel / LINE * BLOCK_TOKENS + token;
        uint8_t *const scales = block + BLOCK_TOKENS * shape.channels, *const zeros = scales + 2 * shape.channels;
        std::memcpy(scales + number * 2, &line.scale, 2), zeros[number] = line.zero;
    }

    void attend_plain(const TestSequence& sequence) {
        const Doubles keys = round_numbers(shape.cache_type, sequence.keys), values = round_numbers(shape.cache_type, sequence.values);
        for (size_t row = 0; row < sequence.rows; row++)
            for (size_t head = 0; head < shape.num_heads(); head++) {
                const size_t at = head / shape.group * shape.channels, end = sequence.end_token(row);
                attend_plain(sequence.queries.data() + row * shape.width() + head * shape.channels, keys.data() + at, values.data() + at,
                             first_token(sequence, row), end, sinks[head]);
            }
    }
    void attend_plain(const float* query, const double* keys, const double* values, size_t begin, size_t end, float sink) {
        const double scale = double(attention().scale);
        Doubles weights, found(shape.channels);
        double largest = shape.has_sinks ? double(sink) : -INFINITY, magnitude = 0, sum = 0;
        for (size_t token = begin; token < end; token++) {
            double product = 0, absolute = 0;
            for (size_t i = 0; i < shape.channels; i++) {
                const double each = double(query[i]) * keys[token * shape.kv_width() + i];
                product += each, absolute += std::fabs(each);
            }
            product *= scale;
            weights.push_back(shape.softcap > 0 ? double(shape.softcap) * std::tanh(product / double(shape.softcap)) : product);
            largest = std::max(largest, weights.back()), magnitude = std::max(magnitude, absolute * scale);
        }
        for (size_t token = begin; token < end; token++) {
            const double weight = std::exp(weights[token - begin] - largest);
            for (size_t i = 0; i < shape.channels; i++) found[i] += weight * values[token * shape.kv_width() + i];
            sum += weight;
        }
        if (shape.has_sinks) sum += std::exp(double(sink) - largest);
        for (double each : found) exact.push_back(each / sum), magnitudes.push_back(magnitude);
    }
};

// The arguments of a call.
struct TestCall {
    Integers begins, past_lens, blocks, block_begins, two_way_begins;
    size_t num_rows, num_blocks;
    Floats queries, keys, values;

    // Rows of no sequence are before and after the rows of the pieces, with keys and values that are not numbers.
    TestCall(const TestAttention& test, const Pieces& pieces, size_t before = 0, size_t after = 0)
        : begins{int32_t(before)}, block_begins{0}, num_rows(before), num_blocks(test.num_blocks) {
        add_strangers(test.shape, before);
        for (const Piece& piece : pieces) {
            const TestSequence& sequence = test.sequences[piece.sequence];
            num_rows += piece.count;
            append(queries, sequence.queries, piece.first, piece.count, test.shape.width());
            append(keys, sequence.keys, sequence.past + piece.first, piece.count, test.shape.kv_width());
            append(values, sequence.values, sequence.past + piece.first, piece.count, test.shape.kv_width());
            blocks.insert(blocks.end(), sequence.blocks.begin(), sequence.blocks.end());
            begins.push_back(int32_t(num_rows)), block_begins.push_back(int32_t(blocks.size()));
            past_lens.push_back(int32_t(sequence.past + piece.first));
            for (size_t row = piece.first; row < piece.first + piece.count; row++) two_way_begins.push_back(sequence.two_way_begin(row));
        }
        num_rows += after;
        add_strangers(test.shape, after);
        if (!test.has_two_way_tokens()) two_way_begins.clear();
        for (Integers* each : {&begins, &past_lens, &blocks, &block_begins, &two_way_begins}) each->shrink_to_fit();
        for (Floats* each : {&queries, &keys, &values}) each->shrink_to_fit();
    }

    Floats run(const Level& level, const Attention& attention, Blocks& cache) const {
        Floats to(num_rows * attention.num_heads * attention.channels, NOT_A_NUMBER);
        const Sequences sequences{past_lens.size(), begins.data(), past_lens.data(), blocks.data(), block_begins.data()};
        attend(level, attention, sequences, {num_blocks, cache.keys.data(), cache.values.data()},
               {num_rows, queries.data(), keys.data(), values.data(), two_way_begins.empty() ? nullptr : two_way_begins.data()}, to.data());
        return to;
    }

private:
    void add_strangers(const AttentionShape& shape, size_t count) {
        queries.resize(queries.size() + count * shape.width(), NOT_A_NUMBER);
        two_way_begins.resize(two_way_begins.size() + count, LEAST);  // nobody reads them
        for (Floats* each : {&keys, &values}) each->resize(each->size() + count * shape.kv_width(), NOT_A_NUMBER);
    }
};

Floats TestAttention::compute(const Level& level, const std::vector<Pieces>& calls, Blocks& cache) const {
    Floats to(exact.size(), NOT_A_NUMBER);
    for (const Pieces& pieces : calls) {
        const Floats found = TestCall(*this, pieces).run(level, attention(), cache);
        size_t row = 0;
        for (const Piece& piece : pieces) {
            const Floats some = slice(found, row, piece.count, shape.width());
            std::copy(some.begin(), some.end(), to.begin() + std::ptrdiff_t((first_row(piece.sequence) + piece.first) * shape.width()));
            row += piece.count;
        }
    }
    return to;
}

bool are_zeros(const Floats& numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](float each) { return each == 0; });
}

// All rows at once, with rows of no sequence around them; then with the cache as it is afterwards, without writing.
void check_at_once(const Level& level, const TestAttention& test, Report& report) {
    constexpr size_t BEFORE = 1, AFTER = 2;
    const std::string what = test.shape.describe();
    const size_t width = test.shape.width(), count = test.exact.size() / width;
    TestCall call(test, test.whole(), BEFORE, AFTER);
    Blocks cache = test.before;
    const Floats all = call.run(level, test.attention(), cache), found = slice(all, BEFORE, count, width);
    report.expect(is_near(found, test.exact, test.magnitudes), what + " is inexact");
    // Rows alone do not see later two-way tokens.
    if (!test.has_two_way_tokens()) report.expect(has_same_bits(found, test.alone), what + " has other bits than rows alone");
    report.expect(are_zeros(slice(all, 0, BEFORE, width)) && are_zeros(slice(all, BEFORE + count, AFTER, width)),
                  what + ": rows of no sequence are not 0");
    report.expect(cache == test.after, what + " writes another cache");
    std::fill(call.keys.begin(), call.keys.end(), NOT_A_NUMBER), std::fill(call.values.begin(), call.values.end(), NOT_A_NUMBER);
    report.expect(has_same_bits(call.run(level, test.attention(false), cache), all), what + " has other bits without writing");
    report.expect(cache == test.after, what + " writes a cache that it must not write");
}

void check_calls(const Level& level, const TestAttention& test, const std::vector<Pieces>& calls, const std::string& what, Report& report) {
    Blocks cache = test.before;
    const Floats found = test.compute(level, calls, cache);
    report.expect(has_same_bits(found, test.alone), test.shape.describe() + " has other bits " + what);
    report.expect(cache == test.after, test.shape.describe() + " writes another cache " + what);
}

// Whether a query of a sequence sees a token.
bool sees(const TestAttention& test, size_t sequence, size_t row, size_t token) {
    const size_t end = test.sequences[sequence].past + row + 1;
    return token < end && token >= test.shape.first_token(end);
}

// A query or a key of a sequence that is NaN spoils the queries that see it, and changes no other one.
void check_not_finite(const Level& level, const TestAttention& test, size_t s, bool is_key, Random& random, Report& report) {
    const AttentionShape& shape = test.shape;
    TestAttention spoilt = test;
    TestSequence& sequence = spoilt.sequences[s];
    const size_t row = random.below(unsigned(sequence.rows)), token = sequence.past + row, first = test.first_row(s);
    const size_t kv_head = random.below(unsigned(shape.num_kv_heads)), head = kv_head * shape.group + random.below(unsigned(shape.group));
    const size_t channel = random.below(unsigned(shape.channels));
    if (is_key)
        sequence.keys[token * shape.kv_width() + kv_head * shape.channels + channel] = NOT_A_NUMBER;
    else
        sequence.queries[row * shape.width() + head * shape.channels + channel] = NOT_A_NUMBER;
    Blocks cache = test.before;
    const Floats found = spoilt.compute(level, {test.whole()}, cache);
    bool is_right = true;
    for (size_t i = 0; i < found.size(); i++) {
        const size_t own_row = i / shape.width(), own_head = i % shape.width() / shape.channels;
        bool is_spoilt = own_row >= first && own_row < first + sequence.rows;
        if (is_key)
            is_spoilt &= own_head / shape.group == kv_head && sees(test, s, own_row - first, token);
        else
            is_spoilt &= own_head == head && own_row == first + row;
        is_right &= is_spoilt ? std::isnan(found[i]) : found[i] == test.alone[i];
    }
    const std::string what = is_key ? "a key" : "a query";
    report.expect(is_right, what + " that is NaN does not spoil its queries, or spoils others: " + shape.describe());
}

bool is_refused(const Level& level, const TestAttention& test, const TestCall& call, bool writes_cache) {
    Blocks cache = test.after;
    try {
        call.run(level, test.attention(writes_cache), cache);
    } catch (const std::out_of_range&) {
        return true;
    }
    return false;
}

struct Fault {
    const char* name;
    void (*put)(TestCall& call);
};

// Faults in a call of sequences of 35, 3 and 301 tokens, of which 2, 3 and 1 are new: blocks 0 and 1, 3, and 5 to 14 are theirs. A
// window may hide blocks 5 to 12.
constexpr Fault FAULTS[] = {
    {"falling begins", [](TestCall& call) { call.begins[1] = 6; }},
    {"an end before the last begin", [](TestCall& call) { call.begins[3] = call.begins[2] - 1; }},
    {"a begin of -1", [](TestCall& call) { call.begins[0] = -1; }},
    {"the least begin", [](TestCall& call) { call.begins[0] = LEAST; }},
    {"the least end", [](TestCall& call) { call.begins[3] = LEAST; }},
    {"more rows than there are", [](TestCall& call) { call.begins[3]++; }},
    {"a row too few", [](TestCall& call) { call.num_rows--; }},
    {"-1 past tokens", [](TestCall& call) { call.past_lens[1] = -1; }},
    {"the least past", [](TestCall& call) { call.past_lens[2] = LEAST; }},
    {"a token more than blocks", [](TestCall& call) { call.past_lens[0] = 95, call.blocks[2] = call.blocks[0]; }},
    {"the largest past", [](TestCall& call) { call.past_lens[0] = MOST; }},
    {"falling begins of blocks", [](TestCall& call) { call.block_begins[1] = 6; }},
    {"a begin of blocks of -1", [](TestCall& call) { call.block_begins[0] = -1; }},
    {"the least begin of blocks", [](TestCall& call) { call.block_begins[0] = LEAST; }},
    {"the least end of blocks", [](TestCall& call) { call.block_begins[3] = LEAST; }},
    {"no blocks", [](TestCall& call) { call.block_begins[2] = call.block_begins[1]; }},
    {"the block -1", [](TestCall& call) { call.blocks[0] = -1; }},
    {"the block after the last one", [](TestCall& call) { call.blocks[1] = int32_t(call.num_blocks); }},
    {"the least block", [](TestCall& call) { call.blocks[3] = LEAST; }},
    {"the largest block", [](TestCall& call) { call.blocks[13] = MOST; }},
    {"no cache", [](TestCall& call) { call.num_blocks = 0; }},
};

// Wrong arguments are refused, and a call after them is right.
void check_faults(const Level& level, size_t window, Random& random, Report& report) {
    const TestAttention test({2, 3, 64, window, false}, {{33, 2}, {0, 3}, {300, 1}}, random);
    for (const Fault& fault : FAULTS)
        for (bool writes_cache : {false, true}) {
            TestCall call(test, test.whole());
            fault.put(call);
            report.expect(is_refused(level, test, call, writes_cache), test.shape.describe() + " takes " + fault.name);
        }
    check_at_once(level, test, report);
}

// Spans of two-way tokens beside other rows, beside the bounds of blocks and parts, and with their first tokens in the cache.
std::vector<TestAttention> make_two_way_tests() {
    Random random(4);
    std::vector<TestAttention> tests;
    const std::vector<Length> lengths{{0, 40, 0, 0, 40}, {0, 9}, {300, 12, 0, 303, 309}, {250, 20, 0, 0, 270}, {31, 1, 0, 0, 32}, {40, 300, 0, 50, 290}};
    for (CacheType type : {CacheType::F16, CacheType::U8, CacheType::F32})
        for (size_t window : {0, 20}) tests.emplace_back(AttentionShape{1, 3, 64, window, false, type, window ? 2.f : 0.f}, lengths, random);
    return tests;
}

// Each sequence alone, and the second half of its rows with the first half in the cache, against all sequences at once.
void check_halves(const Level& level, const TestAttention& test, Report& report) {
    std::vector<Pieces> alone, halves;
    for (size_t s = 0; s < test.sequences.size(); s++) {
        const size_t rows = test.sequences[s].rows;
        alone.push_back({{s, 0, rows}});
        halves.push_back({{s, rows / 2, rows - rows / 2}});
    }
    Blocks cache = test.before;
    const Floats together = test.compute(level, {test.whole()}, cache);
    const Floats second = test.compute(level, halves, cache);
    Blocks own_cache = test.before;
    report.expect(has_same_bits(test.compute(level, alone, own_cache), together), test.shape.describe() + " has other bits in company");
    bool is_same = true;
    for (const Pieces& pieces : halves) {
        const size_t row = test.first_row(pieces[0].sequence) + pieces[0].first;
        const size_t width = test.shape.width();
        is_same &= has_same_bits(slice(second, row, pieces[0].count, width), slice(together, row, pieces[0].count, width));
    }
    report.expect(is_same, test.shape.describe() + " has other bits with the first rows in the cache");
}

void check_two_way_tokens(const Level& level, Report& report) {
    static const std::vector<TestAttention> tests = make_two_way_tests();
    for (const TestAttention& test : tests) check_at_once(level, test, report), check_halves(level, test, report);
    for (const int32_t begin : {LEAST, -2, 1, 255, 260, MOST}) {  // of the fifth row of 20 after 250 tokens, whose span begins at 0
        TestCall call(tests.front(), {{3, 0, 20}});
        call.two_way_begins[4] = begin;
        report.expect(is_refused(level, tests.front(), call, true), "attention takes a wrong begin of two-way tokens");
    }
}

// Calls without rows, or without sequences.
void check_nothing(const Level& level, Random& random, Report& report) {
    const TestAttention test({2, 1, 32, 0, false}, {{40, 0}, {0, 0}}, random);
    for (const Pieces& pieces : {Pieces{}, test.whole()})
        for (size_t strangers : {0, 3}) {
            Blocks cache = test.before;
            const Floats found = TestCall(test, pieces, strangers, strangers).run(level, test.attention(), cache);
            const bool is_right = found.size() == 2 * strangers * test.shape.width() && are_zeros(found);
            report.expect(is_right, "attention of no rows gives other numbers than 0");
            report.expect(cache == test.before, "attention of no rows writes the cache");
        }
}

// Contexts that end beside the bounds of blocks and parts, and some rows for each: other ones for each `number`.
std::vector<Length> make_lengths(size_t number, const Options& options) {
    if (options.is_small) return {{0, 7}, {33, 1}, {250, 8}};
    constexpr size_t PASTS[] = {0, 1, 31, 32, 33, 255, 256, 257, 700}, ROWS[] = {1, 40, 2, 7};
    std::vector<Length> lengths;
    for (size_t past : PASTS) lengths.push_back({past, ROWS[number++ % 4]});
    lengths.insert(lengths.begin() + 4, {100, 0});  // a sequence without rows
    return lengths;
}

std::vector<AttentionShape> make_shapes(const Options& options) {
    if (options.is_small) return {{2, 1, 32, 0, false}, {1, 3, 96, 50, true}};
    std::vector<AttentionShape> shapes;
    for (size_t group : {1, 2, 3, 5, 16})
        for (size_t window : {0, 1, 50, 256, 300})
            shapes.push_back({group == 16 ? size_t(1) : size_t(2), group, 32, window, shapes.size() % 2 > 0});
    for (size_t channels : {64, 96, 128, 256, 512})
        for (size_t group : {1, 3}) shapes.push_back({1, group, channels, group == 1 ? size_t(0) : size_t(100), channels % 128 > 0});
    return shapes;
}

std::vector<TestAttention> make_tests(const Options& options) {
    Random random(2);
    std::vector<TestAttention> tests;
    std::vector<AttentionShape> shapes = make_shapes(options);
    for (CacheType type : {CacheType::F16, CacheType::U8})
        for (size_t i = 0; i < shapes.size(); i++) {
            shapes[i].cache_type = type;
            tests.emplace_back(shapes[i], make_lengths(i, options), random);
        }
    // Sequences that share blocks.
    for (CacheType type : {CacheType::F16, CacheType::U8})
        tests.emplace_back(AttentionShape{2, 2, 64, 0, false, type}, std::vector<Length>{{300, 3}, {256, 9, 256}, {40, 1, 32}}, random);
    // Products that a softcap changes much, and little; a cache in f32.
    for (CacheType type : {CacheType::F16, CacheType::U8, CacheType::F32})
        for (float softcap : {0.5f, 50.f}) {
            if (options.is_small && softcap > 1) continue;
            const size_t group = softcap > 1 ? 3 : 2;
            tests.emplace_back(AttentionShape{1, group, 64, softcap > 1 ? size_t(100) : size_t(0), softcap > 1, type, softcap},
                               make_lengths(group, options), random);
        }
    for (size_t channels : {32, 256})
        if (!options.is_small || channels == 32)
            tests.emplace_back(AttentionShape{2, 2, channels, 50, true, CacheType::F32}, make_lengths(channels, options), random);
    // All numbers of queries that are computed together, some of them beside the bound of two parts.
    std::vector<Length> lengths;
    for (size_t rows = 1; rows <= 13; rows++) lengths.push_back({rows % 2 ? 250 : rows, rows});
    for (CacheType type : {CacheType::F16, CacheType::U8})
        for (size_t window : {0, 6}) tests.emplace_back(AttentionShape{1, 1, 64, window, false, type}, lengths, random);
    tests.emplace_back(AttentionShape{1, 1, 64, 6, false, CacheType::F32, 2}, lengths, random);
    return tests;
}

}  // namespace

void check_attention(const Level& level, const Options& options, Report& report) {
    static const std::vector<TestAttention> tests = make_tests(options);
    Random random(3);
    for (const TestAttention& test : tests) {
        check_at_once(level, test, report);
        check_calls(level, test, test.one_by_one(), "row by row", report);
        check_calls(level, test, test.divide(1, random), "with a row of each sequence in a call", report);
        check_calls(level, test, test.divide(20, random), "in pieces", report);
    }
    for (const TestAttention* test : {&tests.front(), &tests[tests.size() - 2], &tests.back()})
        for (size_t s = 0; s < test->sequences.size(); s++)
            for (bool is_key : {false, true})
                if (test->sequences[s].rows) check_not_finite(level, *test, s, is_key, random, report);
    for (size_t window : {0, 20}) check_faults(level, window, random, report);
    check_nothing(level, random, report);
    check_two_way_tokens(level, report);
}

}  // namespace ouzel
