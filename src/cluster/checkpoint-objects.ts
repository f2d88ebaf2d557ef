// Checkpoints in the object store of the bus are named after their event.
const DIGITS = 16

export const checkpointObjectName = (eventNo: number): string => String(eventNo).padStart(DIGITS, '0')

/** The event number; 0 where it is not the name of a checkpoint. */
export const parseCheckpointObjectName = (name: string): number => (/^\d{16}$/.test(name) ? Number(name) : 0)
