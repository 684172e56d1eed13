import { Lazy, lazy } from '../ui/lazy.tsx'
import { phoneOpen } from './open.ts'

const phone = lazy(async () => (await import('./phone.tsx')).Phone)

export const PhoneDock = () => (phoneOpen.value ? <Lazy of={phone} /> : null)
