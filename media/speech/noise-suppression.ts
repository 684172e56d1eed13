/** Samples of a frame: 20 ms at 8 kHz. */
const FRAME = 160
/** The frame and the one before it. */
const WINDOW = FRAME * 2
const SIZE = 512
const BINS = SIZE / 2 + 1
/** The share of a band that always remains: -18 dB. Less sounds like music. */
const FLOOR = 0.12
/** The noise of a band is this many times the least of its smoothed power (Martin, 2001), and is taken off twice. */
const BIAS = 2.2
const OVER = 2
/** The least is sought in the last two spans of this many frames, so that it follows louder noise. */
const SPAN = 40
/** A single frame counts this much, so that the beginning of speech is kept and peaks of noise are not. */
const ONSET = 0.4
/** Smoothing of the power of a band, and of a falling gain, over frames. */
const POWER_MEMORY = 0.85
const GAIN_MEMORY = 0.5

/**
 * Reduces steady noise of a line by spectral subtraction (Boll, 1979) with minimum statistics: what a band never falls
 * below is its noise. Takes frames of 20 ms at 8 kHz, and returns each 20 ms later.
 */
export class NoiseSuppression {
  readonly #window = Float64Array.from({ length: WINDOW }, (_, at) => Math.sin((Math.PI * (at + 0.5)) / WINDOW))
  readonly #re = new Float64Array(SIZE)
  readonly #im = new Float64Array(SIZE)
  readonly #power = new Float64Array(BINS)
  /** Zero at first: nothing is taken for noise before a whole span was heard. */
  #least = new Float64Array(BINS)
  #leastBefore = new Float64Array(BINS).fill(Number.POSITIVE_INFINITY)
  #frames = 0
  readonly #gain = new Float64Array(BINS).fill(1)
  #before = new Int16Array(FRAME)
  #tail = new Float64Array(FRAME)

  take(frame: Int16Array): Int16Array {
    const re = this.#re.fill(0)
    const im = this.#im.fill(0)
    for (let at = 0; at < FRAME; at++) {
      re[at] = (this.#before[at] ?? 0) * (this.#window[at] ?? 0)
      re[at + FRAME] = (frame[at] ?? 0) * (this.#window[at + FRAME] ?? 0)
    }
    transform(re, im, 1)
    if (this.#frames++ % SPAN === 0) {
      this.#leastBefore = this.#least
      this.#least = new Float64Array(BINS).fill(Number.POSITIVE_INFINITY)
    }
    for (let bin = 0; bin < BINS; bin++) {
      const gain = this.#gainOf(bin, (re[bin] ?? 0) ** 2 + (im[bin] ?? 0) ** 2)
      for (const at of bin === 0 || bin === SIZE / 2 ? [bin] : [bin, SIZE - bin]) {
        re[at] = (re[at] ?? 0) * gain
        im[at] = (im[at] ?? 0) * gain
      }
    }
    transform(re, im, -1)
    const cleaned = Int16Array.from({ length: FRAME }, (_, at) => {
      const sample = (this.#tail[at] ?? 0) + ((re[at] ?? 0) * (this.#window[at] ?? 0)) / SIZE
      return Math.round(Math.max(-32_768, Math.min(32_767, sample)))
    })
    this.#tail = Float64Array.from(
      { length: FRAME },
      (_, at) => ((re[at + FRAME] ?? 0) * (this.#window[at + FRAME] ?? 0)) / SIZE,
    )
    this.#before = frame.slice()
    return cleaned
  }

  #gainOf(bin: number, power: number): number {
    const known = this.#power[bin] ?? 0
    const smooth = known === 0 ? power : POWER_MEMORY * known + (1 - POWER_MEMORY) * power
    this.#power[bin] = smooth
    this.#least[bin] = Math.min(this.#least[bin] ?? smooth, smooth)
    const noise = BIAS * Math.min(this.#least[bin] ?? smooth, this.#leastBefore[bin] ?? smooth)
    const now = Math.max(smooth, ONSET * power, 1)
    const wanted = Math.max(FLOOR, 1 - (OVER * noise) / now)
    // Speech begins at once; noise fades.
    const last = this.#gain[bin] ?? 1
    const gain = wanted > last ? wanted : GAIN_MEMORY * last + (1 - GAIN_MEMORY) * wanted
    this.#gain[bin] = gain
    return gain
  }
}

/** The discrete Fourier transform in place, by decimation in time (Cooley and Tukey, 1965). `sign` -1 inverts it. */
function transform(re: Float64Array, im: Float64Array, sign: 1 | -1): void {
  for (let at = 1, turned = 0; at < SIZE; at++) {
    let bit = SIZE >> 1
    for (; turned & bit; bit >>= 1) turned ^= bit
    turned ^= bit
    if (at < turned) {
      swap(re, at, turned)
      swap(im, at, turned)
    }
  }
  for (let length = 2; length <= SIZE; length <<= 1) {
    const angle = (-sign * 2 * Math.PI) / length
    for (let pair = 0; pair < length / 2; pair++) {
      const [cosine, sine] = [Math.cos(angle * pair), Math.sin(angle * pair)]
      for (let low = pair; low < SIZE; low += length) {
        const high = low + length / 2
        const [a, b] = [re[high] ?? 0, im[high] ?? 0]
        const [x, y] = [a * cosine - b * sine, a * sine + b * cosine]
        re[high] = (re[low] ?? 0) - x
        im[high] = (im[low] ?? 0) - y
        re[low] = (re[low] ?? 0) + x
        im[low] = (im[low] ?? 0) + y
      }
    }
  }
}

function swap(list: Float64Array, left: number, right: number): void {
  const kept = list[left] ?? 0
  list[left] = list[right] ?? 0
  list[right] = kept
}
