import type { Machine } from '../../core/runtime/machine.ts'

/** A machine that rows of tests are of. */
export const MACHINE: Machine = { machine_id: 'mac_1', boot_id: 'boot_1' }
