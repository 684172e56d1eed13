import { signal } from '@preact/signals'

/** Whether the softphone is shown. Its code is loaded the first time. */
export const phoneOpen = signal(false)
/** Whether a call rings or runs, for what is shown without the softphone's code. */
export const inCall = signal(false)
/** A number that another page passes to the softphone to call. */
export const phoneTarget = signal('')

export function callFromPhone(number: string): void {
  phoneTarget.value = number
  phoneOpen.value = true
}
