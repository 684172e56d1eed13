import { setTimeout as pause } from 'node:timers/promises'
import { seeded } from '../random.ts'

// The faults that the soak injects while the platform carries calls (threats §7), and which calls they may affect.

type Victim = 'signaling' | 'media' | 'edge' | 'control'

export interface Fault {
  readonly kind: 'none' | 'kill' | 'stop'
  readonly victim: Victim | null
}

const STOPPED_MS = 5000
const VICTIMS: readonly Victim[] = ['signaling', 'media', 'edge', 'control']
const NO_FAULT: Fault = { kind: 'none', victim: null }

/** Yields faults in the order of a seed. Each round kills and stops each victim once. */
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

/** Reports whether established calls must survive, because the fault kills no process that carries them. */
export const leavesCalls = ({ kind, victim }: Fault): boolean => kind !== 'kill' || victim === 'control'
/** Reports whether new calls must work too. */
export const hurtsNothing = ({ kind, victim }: Fault): boolean => kind === 'none' || victim === 'control'
/** Reports whether no packet may be lost, because the data plane keeps running. */
export const leavesSound = (fault: Fault): boolean => leavesCalls(fault) && fault.victim !== 'media'

export async function inject({ kind }: Fault, pid: number): Promise<void> {
  if (kind === 'kill') process.kill(pid, 'SIGKILL')
  if (kind !== 'stop') return
  process.kill(pid, 'SIGSTOP')
  await pause(STOPPED_MS)
  process.kill(pid, 'SIGCONT')
}
