import type { Machine } from '../../core/runtime/machine.ts'

/** The machine that owns rows in tests. */
export const MACHINE: Machine = { machine_id: 'mac_1', boot_id: 'boot_1' }
