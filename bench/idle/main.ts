import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measure, openCrowd, pause, report, standStill } from '../rtp-crowd.ts'

// Measures the silence of idle calls: one packet thread, a thousand answered legs to which nothing plays. The reference
// is what the kernel alone takes for as many sends in the same run: no data plane on these sockets can take less.
//
//   npm run bench -- idle [--legs 1000] [--seconds 10]

const { values: options } = parseArgs({
  options: { legs: { type: 'string', default: '1000' }, seconds: { type: 'string', default: '10' } },
})
const legs = Number(options.legs)
const TARGET_PERCENT = 10
/** The highest cost of a packet as a multiple of the kernel's. */
const LIMIT_RATIO = 1.5

const crowd = await openCrowd(legs, () => ({ payload_type: 0, codec: 'PCMU', clock_rate: 8000 }))
try {
  await pause(2000)
  const before_us = floor_us()
  const { packets, percent } = await measure(crowd.engine, () => standStill(Number(options.seconds) * 1000))
  const send_us = (before_us + floor_us()) / 2
  const packet_us = (percent * 10_000) / packets
  const kept = packets > legs * 49 && packet_us <= send_us * LIMIT_RATIO
  const rounded = (value: number) => value.toFixed(1)
  console.log(
    `${legs} idle legs: ${rounded(packets / legs)} packets a second each, ${rounded(percent)} % of a core ` +
      `(target ${TARGET_PERCENT} % for 1,000); a packet takes ${rounded(packet_us)} µs, a bare send ` +
      `${rounded(send_us)} µs (limit ${LIMIT_RATIO} times)${kept ? '' : ' FAILED'}`,
  )
  report('idle', { legs, packets_per_second: packets, percent_of_core: percent, packet_us, send_us }, kept)
} finally {
  crowd.close()
}

/** Returns the CPU time of a bare send on this machine now, in microseconds. */
function floor_us(): number {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-floor-'))
  try {
    const program = join(folder, 'floor')
    execFileSync('g++', ['-O2', '-o', program, 'bench/idle/floor.cc'])
    return Number(execFileSync(program, [String(legs)], { encoding: 'utf8' }))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
