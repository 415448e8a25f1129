# Allows @limit calls in each window of @window milliseconds. Returns whether this call is allowed.
# The key @key counts the calls of a window. It is ephemeral, because a lost count costs little. The first call of a
# window creates it, and it expires at the window's end; later calls keep that moment.
let used = eget @key
if not found then
  eset @key 1 EX @window
  return @limit > 0
end
if to_int(used) >= @limit then
  return false
end

eset @key to_int(used) + 1 EX expires(used)
return true
