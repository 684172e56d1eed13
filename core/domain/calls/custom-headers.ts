const MAX_HEADERS = 32

/** Returns the X- headers that a script may see (voice-compat.md §12.1). */
export const customHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => /^x-/i.test(name) && !/^x-strowger/i.test(name))
      .slice(0, MAX_HEADERS),
  )
