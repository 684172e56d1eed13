/**
 * Measures how different two recordings of speech at 8 kHz sound, in the manner of PESQ: it compares the levels of the
 * Bark bands over time. It aligns each piece where it fits best, because networks delay audio and jitter buffers
 * correct that. native/test/spectrum.h does the same; this version is for audio that crossed sockets.
 */

const RATE_HZ = 8000
const WINDOW = 256
/** 10 ms. */
const HOP = 80
/** Edges of the bands in Hz. Telephones cut off what is below; the filters for 8 kHz cut off what is above. */
const EDGES = [100, 200, 300, 400, 510, 630, 770, 920, 1080, 1270, 1480, 1720, 2000, 2320, 2700, 3150, 3700]
/** The length of a piece (half a second) and how far it may be delayed, both in hops. */
const PIECE = 50
const REACH = 40

const hann = Float64Array.from({ length: WINDOW }, (_value, at) => 0.5 - 0.5 * Math.cos((2 * Math.PI * at) / WINDOW))
const cosines = Float64Array.from({ length: WINDOW }, (_value, at) => Math.cos((2 * Math.PI * at) / WINDOW))
const sines = Float64Array.from({ length: WINDOW }, (_value, at) => Math.sin((2 * Math.PI * at) / WINDOW))

/** Returns the energy of each band, every 10 ms. */
function bands(samples: Int16Array): Float64Array[] {
  const frames: Float64Array[] = []
  for (let at = 0; at + WINDOW <= samples.length; at += HOP) {
    const windowed = Float64Array.from(hann, (weight, index) => weight * (samples[at + index] ?? 0))
    const energy = new Float64Array(EDGES.length - 1)
    for (let bin = 1; bin < WINDOW / 2; bin++) {
      const hz = (bin * RATE_HZ) / WINDOW
      const band = EDGES.findIndex((edge, index) => hz >= edge && hz < (EDGES[index + 1] ?? 0))
      if (band < 0) continue
      let re = 0
      let im = 0
      for (let index = 0; index < WINDOW; index++) {
        const phase = (bin * index) % WINDOW
        re += (windowed[index] ?? 0) * (cosines[phase] ?? 0)
        im -= (windowed[index] ?? 0) * (sines[phase] ?? 0)
      }
      energy[band] = (energy[band] ?? 0) + re * re + im * im
    }
    frames.push(energy)
  }
  return frames
}

const sum = (energy: Float64Array) => energy.reduce((all, one) => all + one, 0)

/** Returns the mean difference of the bands' levels in dB, over the moments with speech in the reference. */
export function spectralDistanceDb(reference: Int16Array, heard: Int16Array): number {
  const [wanted, got] = [bands(reference), bands(heard)]
  const loudest = Math.max(0, ...wanted.map(sum))
  // Levels 40 dB below a band's share of the loudest moment are inaudible.
  const floor = (loudest * 1e-4) / EDGES.length
  const levels = (frames: Float64Array[]) => frames.map(energy => energy.map(one => 10 * Math.log10(one + floor)))
  const [wantedDb, gotDb] = [levels(wanted), levels(got)]
  const apart = (one: Float64Array, other: Float64Array) =>
    one.reduce((all, level, band) => all + Math.abs(level - (other[band] ?? 0)), 0) / one.length
  let total = 0
  let spoken = 0
  for (let at = 0; at < wanted.length; at += PIECE) {
    const moments = [...wanted.keys()]
      .slice(at, at + PIECE)
      .filter(moment => sum(wanted[moment] ?? hann) >= loudest * 1e-3)
    const distances = Array.from({ length: REACH + 1 }, (_value, shift) =>
      moments.reduce((all, moment) => {
        const [one, other] = [wantedDb[moment], gotDb[moment + shift]]
        return all + (one && other ? apart(one, other) : 40)
      }, 0),
    )
    total += Math.min(...distances)
    spoken += moments.length
  }
  return spoken > 0 ? total / spoken : 0
}
