import { readdirSync, readFileSync } from 'node:fs'
import type { Platform } from './platform.ts'

// Measures the cost of a call in each process at a fixed rate: CPU time by thread, and requests to the database.

/** A clock tick in Linux's /proc: a hundredth of a second. */
const TICK_MS = 10

/** CPU time of a process, in its main thread and in all others. */
interface Cpu {
  readonly main_ms: number
  readonly others_ms: number
}

interface CallCost {
  readonly rate: number
  readonly calls: number
  readonly failed: number
  readonly retransmissions: number
  /** CPU time per call, by process. */
  readonly cpu: Readonly<Record<string, Cpu>>
  readonly cpu_ms: number
  /** Messages to the database's thread, statements and commits per call, by process. */
  readonly state: Readonly<Record<string, Readonly<Record<string, number>>>>
}

export async function costOfCalls(platform: Platform, rate: number, seconds: number): Promise<CallCost> {
  const calls = rate * seconds
  const before = await lookAt(platform)
  const load = await platform.calls(rate, calls, 0)
  const after = await lookAt(platform)
  const cpu = Object.fromEntries(
    Object.entries(after.cpu).map(([name, { main_ms, others_ms }]) => {
      const earlier = before.cpu[name] ?? { main_ms: 0, others_ms: 0 }
      return [
        name,
        { main_ms: (main_ms - earlier.main_ms) / calls, others_ms: (others_ms - earlier.others_ms) / calls },
      ]
    }),
  )
  const state = Object.fromEntries(
    Object.entries(after.state).map(([name, figures]) => [
      name,
      Object.fromEntries(
        Object.entries(figures).map(([figure, value]) => [
          figure,
          (value - (before.state[name]?.[figure] ?? 0)) / calls,
        ]),
      ),
    ]),
  )
  const cpu_ms = Object.values(cpu).reduce((sum, { main_ms, others_ms }) => sum + main_ms + others_ms, 0)
  return { rate, calls, ...load, cpu, cpu_ms, state }
}

export function printCost({ rate, calls, failed, retransmissions, cpu, cpu_ms, state }: CallCost): void {
  console.log(`${calls} calls at ${rate}/s: ${failed} failed, ${retransmissions} retransmissions`)
  for (const [name, { main_ms, others_ms }] of Object.entries(cpu)) {
    const asked = Object.entries(state[name] ?? {}).map(([figure, value]) => `${value.toFixed(1)} ${figure}`)
    console.log(
      `  ${name.padEnd(10)} ${main_ms.toFixed(2)} ms on its first thread, ${others_ms.toFixed(2)} ms on others` +
        `${asked.length > 0 ? `; database: ${asked.join(', ')}` : ''}`,
    )
  }
  console.log(`  ${cpu_ms.toFixed(2)} ms of CPU a call`)
}

async function lookAt({ pids, base_url }: Platform) {
  const cpu = Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, cpuOf(pid)]))
  return { cpu, state: await stateWork(base_url) }
}

function cpuOf(pid: number): Cpu {
  let [main_ms, others_ms] = [0, 0]
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const text = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')
    // proc(5): utime and stime are the 12th and 13th fields after the name, which may contain spaces.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ms = (Number(fields[11]) + Number(fields[12])) * TICK_MS
    if (Number(thread) === pid) main_ms += ms
    else others_ms += ms
  }
  return { main_ms, others_ms }
}

async function stateWork(base_url: string): Promise<Record<string, Record<string, number>>> {
  const text = await (await fetch(`${base_url}/metrics`)).text()
  const found: Record<string, Record<string, number>> = {}
  for (const [, figure = '', process = '', value] of text.matchAll(
    /^strowger_state_(\w+)_total\{process="(\w+)"\} (\S+)$/gm,
  )) {
    found[process] ??= {}
    found[process][figure] = Number(value)
  }
  return found
}
