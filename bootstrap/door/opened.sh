# All is done: say so.
echo "$of" >nonce
umask 022
note /run/cluster-api
mkdir -p /run/cluster-api
touch /run/cluster-api/bootstrap-success.complete
