/** Lets the process serve others before it goes on: pass it to computations that work in slices. */
export const breathe = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
