import { signal } from '@preact/signals'

/** Whether the telephone is shown; its code is loaded when it first is. */
export const phoneOpen = signal(false)
/** A number that another page wants to be called. */
export const phoneTarget = signal('')

export function callFromPhone(number: string): void {
  phoneTarget.value = number
  phoneOpen.value = true
}
