CALL=/etc/systemd/system/kubexm-call-home.service

# Have systemd keep a connection to the manager at $to, HOST/PORT, where the host cannot be dialled. The first line says whose it is, and
# from then on the host is the server of SSH, by its own sshd and the configuration that this has. A session outlives the unit's end.
home() {
	[ -d /run/systemd/system ] || fail "no systemd, which is to connect to the manager"
	cat >$CALL.part <<-END
	[Unit]
	Description=SSH Call Home to the manager of a Machine
	Wants=network-online.target
	After=network-online.target
	StartLimitIntervalSec=0
	[Service]
	ExecStart=/bin/bash -c 'until exec 3<>/dev/tcp/$to; do sleep 5; done; echo "kubexm-call-home/1 $of" >&3; exec $sshd -i -o LoginGraceTime=120 -o ClientAliveInterval=15 <&3 >&3 3>&-'
	Restart=always
	RestartSec=1
	KillMode=process
	RuntimeDirectory=sshd
	RuntimeDirectoryPreserve=yes
	[Install]
	WantedBy=multi-user.target
	END
	chmod 644 $CALL.part
	if [ -f $CALL ] && [ "$(cat $CALL)" = "$(cat $CALL.part)" ]; then
		rm -f $CALL.part
	else
		hangup
		systemctl -q stop ${CALL##*/} 2>/dev/null || :
		mv -f $CALL.part $CALL
	fi
}

# The connection is opened when all else is done: who answers it asks whose door is open.
call() {
	systemctl daemon-reload
	systemctl -q enable ${CALL##*/}
	systemctl --no-block start ${CALL##*/}
}

# Connect to no manager any more. The connection that there is goes on.
hangup() {
	[ -f $CALL ] || return 0
	systemctl -q disable ${CALL##*/}
	rm -f $CALL
	systemctl daemon-reload
}
