"""A fingerprint that survives re-saving and resizing: the signs of an image's 64 slowest waves.

    c = D g Dᵀ        D_{kj} = cos(π k (j + ½) / 32), k = 0..8        g: the image in grey, 32 × 32
    bit (k, l) = 1 where c_{kl} > median of the 64 waves + 1/20 of their mean size; k and l below 8, the mean (0, 0)
    replaced by the wave (8, 8)

Two images are near duplicates when at most `APART` of the 64 bits differ and their 8 × 8 colour thumbnails differ by
at most `SHADE` on average. Pairs are found without comparing all with all: of four bands of 16 bits at least one agrees
when at most three bits differ.
"""

from __future__ import annotations

import math

import numpy as np

SIDE, WAVES = 32, 8
APART, BANDS, SHADE = 3, 4, 8.0
MOST_PAIRS = 20_000_000  # compared; more means that thousands of images look alike


def fingerprints(grey: np.ndarray) -> np.ndarray:
    """64 bits (n) of grey images (n, 32, 32)."""
    k, j = np.arange(WAVES + 1)[:, None], np.arange(SIDE)
    waves = np.cos(math.pi * k * (j + 0.5) / SIDE)
    c = waves @ grey.astype(np.float64) @ waves.T
    low = c[:, :WAVES, :WAVES].reshape(len(c), -1)
    low[:, 0] = c[:, WAVES, WAVES]
    margin = 0.05 * np.abs(low).mean(1, keepdims=True) + 1e-6  # waves that a smooth image lacks are noise: no bits
    bits = low > np.median(low, axis=1, keepdims=True) + margin
    return np.packbits(bits, axis=1).view(">u8").reshape(-1).astype(np.uint64)


def groups(keys: np.ndarray) -> list[np.ndarray]:
    """Positions that have the same key, for every key that comes twice or more."""
    order = np.argsort(keys, kind="stable")
    edges = np.flatnonzero(keys[order][1:] != keys[order][:-1]) + 1
    return [group for group in np.split(order, edges) if len(group) > 1]


def same_bytes(digest: np.ndarray) -> list[np.ndarray]:
    """Groups of files with the same bytes, by their digests (n, k)."""
    return groups(np.unique(digest, axis=0, return_inverse=True)[1].reshape(-1))


def near(hashes: np.ndarray, thumbs: np.ndarray) -> np.ndarray | None:
    """Pairs (m, 2) of images that look the same; None when too many would have to be compared."""
    pairs, compared = [np.empty((0, 2), np.int64)], 0
    flat = thumbs.astype(np.int16).reshape(len(thumbs), math.prod(thumbs.shape[1:]))
    for band in range(BANDS):
        key = (hashes >> np.uint64(16 * band)) & np.uint64(0xFFFF)
        for group in groups(key):
            compared += len(group) * (len(group) - 1) // 2
            if compared > MOST_PAIRS:
                return None
            first, second = np.triu_indices(len(group), 1)
            a, b = group[first], group[second]
            close = np.bitwise_count(hashes[a] ^ hashes[b]) <= APART
            a, b = a[close], b[close]
            alike = np.abs(flat[a] - flat[b]).sum(1) <= SHADE * flat.shape[1]
            pairs.append(np.stack([np.minimum(a, b), np.maximum(a, b)], 1)[alike])
    return np.unique(np.concatenate(pairs), axis=0)
