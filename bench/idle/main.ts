import { parseArgs } from 'node:util'
import { measure, openCrowd, pause, report } from '../rtp-crowd.ts'

// Measures the silence of idle calls: one packet thread, a thousand answered legs to which nothing plays.
//
//   npm run bench -- idle [--legs 1000] [--seconds 10]

const { values: options } = parseArgs({
  options: { legs: { type: 'string', default: '1000' }, seconds: { type: 'string', default: '10' } },
})
const legs = Number(options.legs)
const LIMIT_PERCENT = 10

const crowd = await openCrowd(legs, () => ({ payload_type: 0, codec: 'PCMU', clock_rate: 8000 }))
try {
  await pause(2000)
  const { packets, percent } = await measure(crowd.engine, Number(options.seconds))
  const kept = packets > legs * 49 && percent <= (LIMIT_PERCENT * legs) / 1000
  console.log(
    `${legs} idle legs: ${(packets / legs).toFixed(1)} packets a second each, ${percent.toFixed(1)} % of a core ` +
      `(limit ${LIMIT_PERCENT} % for 1,000)${kept ? '' : ' FAILED'}`,
  )
  report('idle', { legs, packets_per_second: packets, percent_of_core: percent }, kept)
} finally {
  crowd.close()
}
