import { setTimeout as pause } from 'node:timers/promises'
import { seeded } from '../random.ts'

// What is done to the platform while it carries calls (threats §7), and what calls must not notice of it.

type Victim = 'signaling' | 'media' | 'edge' | 'control'

export interface Fault {
  readonly kind: 'none' | 'kill' | 'stop'
  readonly victim: Victim | null
}

const STOPPED_MS = 5000
const VICTIMS: readonly Victim[] = ['signaling', 'media', 'edge', 'control']
const NO_FAULT: Fault = { kind: 'none', victim: null }

/** All that a seed leads to: each victim is killed and stopped once, in the order of the seed, then all of it again. */
export function* faultsOf(seed: number, kinds: readonly Fault['kind'][]): Generator<Fault> {
  const random = seeded(seed)
  for (;;) {
    const turn = kinds.flatMap((kind): Fault[] =>
      kind === 'none' ? [NO_FAULT] : VICTIMS.map(victim => ({ kind, victim })),
    )
    for (let left = turn.length; left > 0; left--) {
      const at = Math.floor(random() * left)
      yield turn[at] as Fault
      turn[at] = turn[left - 1] as Fault
    }
  }
}

/** Calls that talk go on, both sides and their sound: nothing that carries them was killed. */
export const leavesCalls = ({ kind, victim }: Fault): boolean => kind !== 'kill' || victim === 'control'
/** Not even new calls are hurt. */
export const hurtsNothing = ({ kind, victim }: Fault): boolean => kind === 'none' || victim === 'control'
/** No packet is lost: the data plane runs. */
export const leavesSound = (fault: Fault): boolean => leavesCalls(fault) && fault.victim !== 'media'

export async function inject({ kind }: Fault, pid: number): Promise<void> {
  if (kind === 'kill') process.kill(pid, 'SIGKILL')
  if (kind !== 'stop') return
  process.kill(pid, 'SIGSTOP')
  await pause(STOPPED_MS)
  process.kill(pid, 'SIGCONT')
}
