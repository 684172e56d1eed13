import { useState } from 'preact/hooks'
import { Lazy, lazy } from '../ui/lazy.tsx'
import { phoneOpen } from './open.ts'

const phone = lazy(async () => (await import('./phone.tsx')).Phone)

/** Once opened, the telephone stays in the page, hidden when closed: it plays the call, and calls ring there. */
export const PhoneDock = () => {
  const [opened, setOpened] = useState(false)
  if (phoneOpen.value && !opened) setOpened(true)
  return opened ? <Lazy of={phone} /> : null
}
