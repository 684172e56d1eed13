import { parseArgs } from 'node:util'
import { encodeAll } from '../../native/index.ts'
import { type Format, measure, openCrowd, pause, report } from '../rtp-crowd.ts'

// Measures a room of 250: a few participants talk, all others listen with the noise of their lines. One half has G.711,
// the other half Opus.
//
//   npm run bench -- conference [--participants 250] [--talkers 5] [--seconds 10]

const { values: options } = parseArgs({
  options: {
    participants: { type: 'string', default: '250' },
    talkers: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '10' },
  },
})
const size = Number(options.participants)
const talkers = Number(options.talkers)
const FORMATS: readonly [Format, Format] = [
  { payload_type: 0, codec: 'PCMU', clock_rate: 8000 },
  { payload_type: 96, codec: 'OPUS', clock_rate: 48_000 },
]
const LIMIT_PERCENT = 100

const audio = (rate_hz: number, amplitude: number, hz: number) =>
  Int16Array.from({ length: rate_hz * 2 }, (_, at) => amplitude * Math.sin((2 * Math.PI * hz * at) / rate_hz))
const payloads = (amplitude: number) => [
  encodeAll('PCMU', audio(8000, amplitude, 440)),
  encodeAll('OPUS', audio(48_000, amplitude, 440)),
]
const loud = payloads(8000)
const quiet = payloads(20)

const crowd = await openCrowd(size, index => FORMATS[index % 2] ?? FORMATS[0])
const conference = crowd.engine.openConference()
for (const { stream } of crowd.members) conference.join(stream)
let tick = 0
const sending = setInterval(() => {
  for (const [index, one] of crowd.members.entries()) {
    const frames = (index < talkers ? loud : quiet)[index % 2] ?? []
    const payload = frames[tick % frames.length]
    if (payload) one.send(payload)
  }
  tick++
}, 20)
try {
  await pause(3000)
  const { packets, percent } = await measure(crowd.engine, () => pause(Number(options.seconds) * 1000))
  const kept = packets > size * 45 && percent <= LIMIT_PERCENT
  console.log(
    `${size} participants, ${talkers} talk: ${(packets / size).toFixed(1)} packets a second each, ` +
      `${percent.toFixed(1)} % of a core (limit ${LIMIT_PERCENT} %)${kept ? '' : ' FAILED'}`,
  )
  report('conference', { participants: size, talkers, packets_per_second: packets, percent_of_core: percent }, kept)
} finally {
  clearInterval(sending)
  crowd.close()
}
