/**
 * Sends a message to the process that started this one. Where that has just ended, the message is lost: the event `disconnect`
 * follows and decides what this process does.
 */
export function sendToParent(message: object): void {
  // Without a callback, a message that finds nobody would be an uncaught error of this process.
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}
