import { readFileSync } from 'node:fs'

const CAP_SYS_PTRACE = 19n

/** Reports whether this process may inspect the platform's, which root starts as other users. A container's may not. */
function mayTrace(): boolean {
  const rights = BigInt(`0x${/^CapEff:\s+(\w+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]}`)
  return process.geteuid?.() !== 0 || ((rights >> CAP_SYS_PTRACE) & 1n) === 1n
}

/** Settings with which tests may inspect the platform's processes. */
export const TRACEABLE: Readonly<Record<string, string>> = mayTrace() ? {} : { STROWGER_USERS: 'off' }
