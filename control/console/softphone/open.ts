import { signal } from '@preact/signals'

/** Whether the telephone is shown. Its code loads the first time. */
export const phoneOpen = signal(false)
/** A number that another page asks the telephone to call. */
export const phoneTarget = signal('')

export function callFromPhone(number: string): void {
  phoneTarget.value = number
  phoneOpen.value = true
}
