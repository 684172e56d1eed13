import { readFileSync } from 'node:fs'

const CAP_SYS_PTRACE = 19n

/** Whether this process may inspect processes of other users. A container's root may not. */
function mayTrace(): boolean {
  const rights = BigInt(`0x${/^CapEff:\s+(\w+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]}`)
  return process.geteuid?.() !== 0 || ((rights >> CAP_SYS_PTRACE) & 1n) === 1n
}

/** Settings of a platform whose processes the tests may inspect. */
export const TRACEABLE: Readonly<Record<string, string>> = mayTrace() ? {} : { STROWGER_USERS: 'off' }
