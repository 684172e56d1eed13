import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Notice } from './basics.tsx'

/** A component that may name what it will read, so that the answers come while it is drawn. */
export type AheadComponent<P> = ComponentType<P> & { ahead?(): readonly string[] }

interface LazyComponent<P> {
  load(): Promise<AheadComponent<P>>
  loaded: AheadComponent<P> | null
}

/** A component that loads its code when it is first shown. */
export function lazy<P>(load: () => Promise<AheadComponent<P>>): LazyComponent<P> {
  let pending: Promise<AheadComponent<P>> | null = null
  const entry: LazyComponent<P> = {
    loaded: null,
    load() {
      pending ??= load().then(
        found => {
          entry.loaded = found
          return found
        },
        error => {
          pending = null
          throw error
        },
      )
      return pending
    },
  }
  return entry
}

export function Lazy<P extends object>({ of, ...props }: { of: LazyComponent<P> } & P) {
  const [, setReady] = useState(false)
  const [failed, setFailed] = useState(false)
  useEffect(() => {
    let here = true
    of.load().then(
      () => here && setReady(true),
      () => here && setFailed(true),
    )
    return () => {
      here = false
    }
  }, [of])
  if (failed)
    return (
      <Notice tone="bad" title="This page could not be loaded">
        <span>
          The console was probably updated. <a href={location.href}>Load it again</a>.
        </span>
      </Notice>
    )
  const Component = of.loaded
  return Component ? <Component {...(props as P)} /> : <output class="loading">Loading…</output>
}
